use takt_derive::DdsType;
use takt_xtypes::*;

#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes")]
struct ShapeType {
    #[dds(key, bound = 128)]
    color: String,
    x: i32,
    y: i32,
    shapesize: i32,
    additional_payload_size: Vec<u8>,
}

#[test]
fn shape() {
    let s = ShapeType { color: "BLUE".into(), x: 1, y: 2, shapesize: 3, additional_payload_size: vec![255; 3] };
    for repr in [Representation::Xcdr1, Representation::Xcdr2] {
        let mut out = vec![0; serialized_len(&s, repr)];
        let n = serialize(&s, repr, &mut out).unwrap();
        assert_eq!(n, out.len());
        println!("{out:02x?}");
        let mut back = ShapeType::default();
        deserialize(&mut back, &out).unwrap();
        assert_eq!(s, back);
    }
}
