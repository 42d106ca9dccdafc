//! Tests of `to_idl` with the installed IDL compilers: idlc of CycloneDDS compiles the text to the
//! same type, and the generator of Fast DDS accepts it.

use std::process::{Command, ExitStatus, Stdio};

use takt_derive::DdsType;
use takt_testkit::directory::Directory;
use takt_testkit::{not_run, require, waiting};
use takt_xtypes::dynamic::DynamicType;
use takt_xtypes::type_object::{TypeInformation, TypeRegistry};
use takt_xtypes::{Bounded, Char8, TypeSupport, Uint8};

use crate::dynamic::dynamic;
use crate::support::hex;
use crate::zoo;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, DdsType)]
#[dds(crate = "takt_xtypes", name = "colors::E", extensibility = "final", rename_all = "UPPERCASE")]
enum Color {
    #[default]
    Red,
    Green,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, DdsType)]
#[dds(crate = "takt_xtypes", name = "printed::Level", bit_bound = 16)]
enum Level {
    #[default]
    Low = 3,
    #[dds(name = "long")]
    Long,
}

#[derive(Clone, Debug, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes", name = "printed::Signal", extensibility = "final", discriminator = "Color", default)]
enum Signal {
    #[dds(case = Color::Red, name = "stop")]
    Stop(i32),
    #[dds(case = Color::Green, name = "go")]
    Go(Vec<Bounded<String, 3>>),
}

#[derive(Clone, Debug, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes", name = "printed::ByLetter", discriminator = "Char8", default, rename_all = "snake_case")]
enum ByLetter {
    #[dds(case = Char8(b'a'))]
    Letter(f64),
    #[dds(case = [Char8(0x41), Char8(0x27)])]
    Other(u8),
}

/// Type with names that are keywords of IDL, in a module with such a name.
#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes", name = "module::struct", extensibility = "final")]
struct Keywords {
    #[dds(key)]
    long: i32,
    switch: u16,
    octet: u8,
    #[dds(name = "Sequence")]
    capital: bool,
}

#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes", name = "printed::Parts", nested, extensibility = "mutable")]
struct Parts {
    octets: Vec<u8>,
    nested: Vec<Vec<i32>>,
    #[dds(bound = 4)]
    few: Vec<Vec<String>>,
    matrix: [[f32; 2]; 3],
    #[dds(id = 40)]
    level: Level,
    #[dds(must_understand)]
    letter: Char8,
}

#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes", name = "printed::Whole", rename_all = "camelCase")]
struct Whole {
    #[dds(key)]
    frame_id: i64,
    the_signal: Signal,
    selected: ByLetter,
    the_parts: Parts,
    color: Color,
    maybe: Option<Level>,
}

#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes", name = "printed::Uses")]
struct Uses {
    keywords: Keywords,
}

/// Arrays as sequence elements, which need a typedef in IDL, and `uint8`, which differs from
/// `octet`.
#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes", name = "printed::Arrays")]
struct Arrays {
    small: Vec<Uint8>,
    triples: Vec<[i32; 3]>,
    again: Vec<[i32; 3]>,
    tables: Vec<[[f64; 2]; 4]>,
}

#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes", name = "printed::Item", nested, extensibility = "final")]
struct Item {
    number: i32,
}

#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes", name = "printed::Holder", nested, extensibility = "final")]
struct Holder {
    pairs: Vec<[Item; 2]>,
}

#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes", name = "printed::ArraysOfStructs")]
struct ArraysOfStructs {
    holders: Vec<[Holder; 3]>,
    nested: Vec<[Vec<[Item; 2]>; 4]>,
}

/// Runs a compiler on a file with this text.
fn compile(directory: &Directory, program: &str, arguments: &[&str], idl: &str) -> Option<(ExitStatus, String)> {
    directory.write("printed.idl", idl);
    let mut command = Command::new(program);
    let command = command.current_dir(directory.path()).args(arguments).arg("printed.idl").stdin(Stdio::null());
    require::program(program).ok()?; // tidy-allow(dropped-cause): `None` means that the program is missing
    let output = waiting::output(command);
    let output_text = [output.stdout, output.stderr].concat();
    Some((output.status, String::from_utf8_lossy(&output_text).into_owned()))
}

/// Returns the type information that idlc generates from the printed type; `None` without idlc.
fn through_idlc(ty: &DynamicType) -> Option<TypeInformation> {
    let directory = Directory::new(&format!("idl-{}", ty.name().replace("::", "-")));
    let idl = ty.to_idl();
    let (status, output) = compile(&directory, "idlc", &[], &idl)?;
    assert!(status.success(), "{output}\n{idl}");
    let code = directory.read("printed.c");
    let start = format!("#define TYPE_INFO_CDR_{} (unsigned char []){{", ty.name().replace("::", "_"));
    let (_, rest) = code.split_once(&start).unwrap_or_else(|| panic!("no {start} in\n{code}"));
    let (bytes, _) = rest.split_once('}').expect("it ends");
    let digits: String = bytes.split("0x").skip(1).map(|byte| &byte[..2]).collect();
    Some(TypeInformation::parse(&hex(&digits)).expect("type information"))
}

fn compare<T: TypeSupport>() {
    let Some(information) = through_idlc(&dynamic::<T>()) else {
        return not_run("idlc of CycloneDDS is not installed");
    };
    let own = T::type_information(&mut TypeRegistry::new());
    let idl = dynamic::<T>().to_idl();
    assert_eq!(information.minimal.type_id, own.minimal.type_id, "minimal form of\n{idl}");
    assert_eq!(information.complete.type_id, own.complete.type_id, "complete form of\n{idl}");
}

/// INTEROP(CycloneDDS 0.10.2): idlc uses TK_BYTE for `uint8` and TK_CHAR8 for `int8`, so types with
/// these are left out.
#[test]
fn printed_idl_compiles_back_to_the_same_type() {
    compare::<Whole>();
    compare::<Uses>();
    compare::<zoo::ShapeType>();
    compare::<zoo::FinalOptional>();
    compare::<zoo::Derived>();
    compare::<zoo::Keyed>();
    compare::<zoo::MutableKeyed>();
}

#[test]
fn arrays_in_collections_are_printed_as_typedefs() {
    let idl = dynamic::<Arrays>().to_idl();
    assert!(
        idl.contains("typedef long array_long_of_3[3];") && idl.contains("typedef double array_double_of_4__2[4][2];")
    );
    assert!(idl.contains("sequence<array_long_of_3> again;"), "{idl}");
    if through_idlc(&dynamic::<Arrays>()).is_none() {
        not_run("idlc of CycloneDDS is not installed");
    }
}

/// INTEROP(CycloneDDS 0.10.2): idlc refuses a module that is reopened after a `typedef` of one of
/// its types, unless the `typedef` is in another module.
#[test]
fn typedefs_of_types_in_modules_are_printed_in_separate_modules() {
    let idl = dynamic::<ArraysOfStructs>().to_idl();
    assert!(idl.contains("module array_printed__Item_of_2 {\n  typedef printed::Item element[2];\n};\n"), "{idl}");
    assert!(idl.contains("sequence<array_printed__Item_of_2::element> pairs;"), "{idl}");
    if through_idlc(&dynamic::<ArraysOfStructs>()).is_none() {
        not_run("idlc of CycloneDDS is not installed");
    }
}

#[test]
fn keywords_are_escaped_and_labels_of_other_modules_are_scoped() {
    let idl = dynamic::<Uses>().to_idl() + &dynamic::<Whole>().to_idl() + &dynamic::<Arrays>().to_idl();
    for line in [
        "module _module {",
        "@final struct _struct {",
        "@key long _long;",
        "octet _octet;",
        "boolean _Sequence;",
        "_module::_struct keywords;",
        "case colors::RED:",
        "sequence<string<3> > go;",
        "case '\\x27':",
        "@appendable @bit_bound(16) enum Level {",
        "@final enum E {",
        "@value(3) Low,",
        "sequence<uint8> small;",
        "sequence<octet> octets;",
        "@key long long frameId;",
    ] {
        assert!(idl.contains(line), "{line} is not in\n{idl}");
    }
    assert_eq!(idl.matches("module printed {").count(), 3, "types of a module stand together:\n{idl}");
}

#[test]
fn fast_dds_generator_accepts_printed_idl() {
    let arrays = [dynamic::<Arrays>().to_idl(), dynamic::<ArraysOfStructs>().to_idl()];
    for idl in [dynamic::<Whole>().to_idl(), dynamic::<zoo::Primitives>().to_idl()].into_iter().chain(arrays) {
        let directory = Directory::new("idl-fast");
        let Some((status, output)) = compile(&directory, "fastddsgen", &["-replace", "-t", "."], &idl) else {
            return not_run("fastddsgen of Fast DDS is not installed");
        };
        assert!(status.success() && !output.contains("error") && !output.contains("Exception"), "{output}\n{idl}");
    }
}
