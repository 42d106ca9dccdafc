//! Test that the dictionary of the fuzz targets contains the constants of this crate.

const DICTIONARY: &str = include_str!("../../../../../lab/fuzz/rtps.dict");

fn escaped(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("\\x{octet:02x}")).collect()
}

/// Returns the hexadecimal numbers in the lines that `is_wanted` selects.
fn numbers(source: &str, is_wanted: impl Fn(&str) -> bool) -> Vec<Vec<u32>> {
    let number = |text: &str| {
        let digits: String = text.chars().take_while(char::is_ascii_hexdigit).collect();
        u32::from_str_radix(&digits, 16).expect("hexadecimal digits follow")
    };
    source.lines().filter(|line| is_wanted(line)).map(|line| line.split("0x").skip(1).map(number).collect()).collect()
}

#[test]
fn every_parameter_submessage_and_entity_is_in_the_dictionary() {
    let mut words = Vec::new();
    let parameters = numbers(include_str!("../../src/parameter.rs"), |line| line.contains("pub const PID_"));
    words.extend(parameters.iter().map(|pid| (pid[0] as u16).to_le_bytes().to_vec()));
    let entities = numbers(include_str!("../../src/guid.rs"), |line| line.contains(": Self = Self([0x"));
    words.extend(entities.iter().map(|octets| octets.iter().map(|octet| *octet as u8).collect()));
    let kinds = numbers(include_str!("../../src/message/mod.rs"), |line| line.contains(": u8 = 0x"));
    words.extend(kinds.iter().map(|kind| vec![kind[0] as u8]));
    assert!(parameters.len() > 60 && entities.len() > 14 && kinds.len() > 12);
    for word in words {
        let entry = format!("\"{}", escaped(&word));
        assert!(DICTIONARY.lines().any(|line| line.starts_with(&entry)), "{entry}");
    }
}
