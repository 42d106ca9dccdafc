//! `takt type --rust`: the printed code compiles, and its derived type has the type identifier of
//! the original.

use crate::process::Takt;
use takt::dynamic::DynamicTypeSupport;
use takt::xtypes::type_object::{TypeIdentifier, TypeRegistry};
use takt::{DdsType, TypeSupport};

/// Types that the command prints.
mod original {
    use std::collections::BTreeMap;
    use takt::DdsType;
    use takt::xtypes::{Bounded, Char8, Uint8, WString};

    #[derive(DdsType, Clone, Copy, Debug, Default, PartialEq, Eq)]
    #[dds(name = "robots::Mode", extensibility = "final", bit_bound = 8, rename_all = "SCREAMING_SNAKE_CASE")]
    pub enum Mode {
        #[default]
        Idle,
        MovingFast = 7,
        #[dds(default)]
        Fault,
    }

    takt::xtypes::bitmask! {
        /// Flags.
        pub struct Flags: u16 as "robots::Flags" {
            /// First.
            const POWERED = 0;
            /// Last.
            const CALIBRATED = 9;
        }
    }

    #[derive(DdsType, Clone, Debug, PartialEq)]
    #[dds(name = "robots::Command", discriminator = "Mode", default, rename_all = "camelCase", nested)]
    pub enum Command {
        #[dds(case = Mode::Idle)]
        WaitFor(f64),
        #[dds(case = [Mode::MovingFast, Mode::Fault], id = 9, bound = 12)]
        Text(String),
    }

    #[derive(DdsType, Clone, Debug, PartialEq)]
    #[dds(name = "robots::Key", discriminator = "Char8", extensibility = "final", default, key)]
    pub enum Key {
        #[dds(case = Char8(65), name = "letter_a")]
        A(i8),
        #[dds(default, case = Char8(66))]
        Other(Box<i64>),
    }

    #[derive(DdsType, Clone, Debug, Default, PartialEq)]
    #[dds(name = "robots::Base", extensibility = "mutable")]
    pub struct Base {
        #[dds(key, id = 5, name = "robotId")]
        pub robot: u32,
        #[dds(bound = 16, must_understand)]
        pub r#type: String,
    }

    #[derive(DdsType, Clone, Debug, Default, PartialEq)]
    #[dds(name = "robots::State", extensibility = "mutable", autoid = "hash", rename_all = "camelCase")]
    pub struct State {
        #[dds(base)]
        pub base: Base,
        pub the_mode: Mode,
        pub flags: Flags,
        pub command: Command,
        pub keys: Vec<Key>,
        pub maybe: Option<Box<Mode>>,
        #[dds(bound = 4)]
        pub names: Vec<Bounded<String, 8>>,
        pub matrix: [[f32; 3]; 2],
        pub octets: Vec<u8>,
        pub small: Uint8,
        pub wide: WString,
        #[dds(hashid = "other")]
        pub map: BTreeMap<String, i16>,
    }
}

/// Printed form of these types.
#[allow(missing_docs)]
mod printed {
    include!("rust_types/printed.txt");
}

fn identifiers<T: TypeSupport>() -> (TypeIdentifier, TypeIdentifier) {
    let information = T::type_information(&mut TypeRegistry::new());
    (information.minimal.type_id, information.complete.type_id)
}

#[test]
fn printed_rust_is_the_same_type() {
    let type_ = DynamicTypeSupport::of::<original::State>().expect("a type that compiles can be built");
    let text = type_.dynamic_type().expect("it is known").to_rust();
    assert_eq!(text, include_str!("rust_types/printed.txt"), "the file has to hold this:\n{text}");
    assert_eq!(identifiers::<printed::State>(), identifiers::<original::State>());
}

#[test]
fn type_of_a_topic_is_printed_as_rust() {
    let (text, status) = Takt::start("type --own ShapeType --rust").finish();
    assert!(status.success(), "{text}");
    let expected = "#[derive(takt::DdsType, Clone, Debug, PartialEq)]\n#[dds(default)]\npub struct ShapeType {\n    \
        #[dds(key, bound = 128)]\n    pub color: String,\n    pub x: i32,\n    pub y: i32,\n    pub shapesize: i32,\n}";
    assert_eq!(text, expected);
    #[derive(DdsType, Clone, Debug, PartialEq)]
    #[dds(default)]
    struct ShapeType {
        #[dds(key, bound = 128)]
        color: String,
        x: i32,
        y: i32,
        shapesize: i32,
    }
    let report = Takt::start("type --own ShapeType --rust --json").json();
    assert_eq!((report["rust"].as_str(), report["idl"].as_str()), (Some(&*format!("{expected}\n")), None));
    let of_command = DynamicTypeSupport::of::<ShapeType>().expect("it can be built");
    assert_eq!(of_command.dynamic_type().expect("it is known").to_rust(), format!("{expected}\n"));
}
