//! Tests of ROS 2 message files.

use std::collections::BTreeMap;

use takt_idl::ros2;
use takt_testkit::directory::Directory;
use takt_xtypes::TypeSupport;
use takt_xtypes::dynamic::DynamicType;
use takt_xtypes::type_object::TypeRegistry;

use takt_derive::DdsType;

#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes", name = "builtin_interfaces::msg::dds_::Time_", extensibility = "final")]
struct Time {
    sec: i32,
    nanosec: u32,
}

#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes", name = "std_msgs::msg::dds_::Header_", extensibility = "final")]
struct Header {
    stamp: Time,
    frame_id: String,
}

/// Temporary files of a test.
struct Sources(Directory);

impl Sources {
    fn with(name: &str, files: &[(&str, &str)]) -> Self {
        Self(Directory::with(&format!("msg-{name}"), files))
    }

    fn read(&self, message: &str) -> Result<(String, TypeRegistry), String> {
        let shown = format!("{}/", self.0.path().display());
        let relative = |error: takt_idl::Diagnostic| error.to_string().replace(&shown, "");
        let idl = ros2::read(message, &[self.0.file("nowhere"), self.0.path().to_owned()]).map_err(relative)?;
        let mut registry = TypeRegistry::new();
        let name = ros2::type_name(message).map_err(relative)?;
        let information = idl.type_information(&name, &mut registry).map_err(relative)?;
        let ty = DynamicType::new(&information.complete.type_id, &registry).expect("a type");
        Ok((ty.to_idl(), registry))
    }
}

const TIME: (&str, &str) =
    ("share/builtin_interfaces/msg/Time.msg", "# Seconds.\nint32 sec\nuint32 nanosec # of the second\n");
const HEADER: (&str, &str) =
    ("share/std_msgs/msg/Header.msg", "builtin_interfaces/Time stamp\n\nstring frame_id \"map\"\n");

#[test]
fn message_has_the_type_of_an_equal_rust_type() {
    let directory = Sources::with("header", &[TIME, HEADER]);
    let (_, registry) = directory.read("std_msgs/msg/Header").expect("it is read");
    let own = Header::type_information(&mut TypeRegistry::new());
    assert!(registry.get(&own.complete.type_id).is_some() && registry.get(&own.minimal.type_id).is_some());
}

#[test]
fn every_kind_of_field_is_parsed() {
    let text = "uint8 LEVEL=3
string WORD = 'a # b'
bool flag true
byte raw\nchar letter\nuint8 small 7\nint8 i8\nint16 i16\nuint16 u16\nint32 i32\nuint32 u32\nint64 i64\nuint64 u64
float32 f32 1.5\nfloat64 f64\nstring s\nstring<=8 t\nwstring w
int32[] free\nint32[<=4] few\nint32[3] three [1, 2, 3]\nstring<=5[<=2] words
Time own\nstd_msgs/msg/Header[] headers
";
    let directory =
        Sources::with("kinds", &[TIME, HEADER, ("pkg/msg/All.msg", text), ("pkg/msg/Time.msg", "int64 ns\n")]);
    let (idl, _) = directory.read("pkg/msg/All").expect("it is read");
    for line in [
        "@final struct All_ {",
        "boolean flag;",
        "octet raw;",
        "uint8 letter;",
        "uint8 small;",
        "int8 i8;",
        "unsigned long long u64;",
        "float f32;",
        "double f64;",
        "string<8> t;",
        "wstring w;",
        "sequence<long> free;",
        "sequence<long, 4> few;",
        "long three[3];",
        "sequence<string<5>, 2> words;",
        "pkg::msg::dds_::Time_ own;",
        "sequence<std_msgs::msg::dds_::Header_> headers;",
    ] {
        assert!(idl.contains(line), "{line} is not in\n{idl}");
    }
    assert!(!idl.contains("LEVEL") && !idl.contains("WORD"), "{idl}");
}

#[test]
fn message_without_fields_has_the_placeholder_member_of_rosidl() {
    let directory = Sources::with("empty", &[("std_msgs/msg/Empty.msg", "# nothing\n")]);
    let (idl, _) = directory.read("std_msgs/Empty").expect("it is read");
    assert!(
        idl.contains("@final struct Empty_ {") && idl.contains("uint8 structure_needs_at_least_one_member;"),
        "{idl}"
    );
}

#[test]
fn malformed_message_is_refused_with_its_line() {
    let files = |text| [TIME, ("pkg/msg/Bad.msg", text)];
    for (text, what) in [
        ("int32 a\nint33 b\n", "pkg/msg/Bad.msg:2:1: no pkg/msg/int33.msg below "),
        ("int32\n", "Bad.msg:1:1: expected a type and the name of a field, found 'int32'"),
        ("int32 a\n\nint32 a\n", "Bad.msg:3:1: two fields named 'a'"),
        ("int32[ a\n", "expected ']' at the end of 'int32['"),
        ("int32[0] a\n", "expected a positive number, found '0'"),
        ("int32<=3 a\n", "'int32' has no bound; only string and wstring do"),
        ("string<=x a\n", "expected a positive number, found 'x'"),
        ("int32 a;\n", "expected a default value or nothing after 'a', found ';'"),
        ("Bad[] a\n", "Bad.msg:1:1: pkg/Bad contains itself"),
        ("../../etc/passwd a\n", "expected PACKAGE/msg/NAME, found '../../etc/passwd'"),
    ] {
        let error = Sources::with("bad", &files(text)).read("pkg/msg/Bad").expect_err(text);
        assert!(error.contains(what), "{text}: {error}");
    }
    let directory = Sources::with("names", &[TIME]);
    for (name, what) in [
        ("String", "String:1:1: expected PACKAGE/msg/NAME, found 'String'"),
        ("pkg/srv/Add", "'srv' is not supported: only messages (msg) are"),
        ("pkg/action/Go", "'action' is not supported"),
        ("../msg/A", "expected PACKAGE/msg/NAME"),
        ("pkg/msg/None", "no pkg/msg/None.msg below "),
    ] {
        assert!(directory.read(name).expect_err(name).contains(what), "{name}");
    }
}

#[test]
fn messages_that_nest_too_deeply_are_refused() {
    let files: Vec<(String, String)> =
        (0..80).map(|n| (format!("pkg/msg/M{n}.msg"), format!("M{} a\n", n + 1))).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let error = Sources::with("deep", &files).read("pkg/msg/M0").expect_err("80 levels");
    assert!(error.contains("M63.msg:1:1: more than 64 levels of messages"), "{error}");
}

#[test]
fn topic_names_get_the_ros_2_prefix_once() {
    assert_eq!(ros2::topic_name("/chatter"), "rt/chatter");
    assert_eq!(ros2::topic_name("chatter"), "rt/chatter");
    assert_eq!(ros2::topic_name("/ns/chatter"), "rt/ns/chatter");
    assert_eq!(ros2::topic_name("rt/chatter"), "rt/chatter");
    assert_eq!(ros2::type_name("std_msgs/msg/String").expect("a message"), "std_msgs::msg::dds_::String_");
}

/// The expected hashes are those of ROS 2 Jazzy.
#[test]
fn type_hashes_equal_those_of_ros_2() {
    let texts = [
        ("builtin_interfaces/msg/Time", "int32 sec\nuint32 nanosec\n"),
        ("std_msgs/msg/Header", "builtin_interfaces/Time stamp\nstring frame_id\n"),
        ("std_msgs/msg/String", "string data # text\n"),
        ("std_msgs/msg/Empty", ""),
        ("std_msgs/msg/Char", "char data\n"),
        ("std_msgs/msg/Byte", "byte data\n"),
        ("std_msgs/msg/MultiArrayDimension", "string label\nuint32 size\nuint32 stride\n"),
        ("std_msgs/msg/MultiArrayLayout", "MultiArrayDimension[] dim\nuint32 data_offset\n"),
        ("std_msgs/msg/UInt64MultiArray", "MultiArrayLayout layout\nuint64[] data\n"),
        ("geometry_msgs/msg/Vector3", "float64 x\nfloat64 y\nfloat64 z\n"),
        ("geometry_msgs/msg/Twist", "Vector3 linear\nVector3 angular\n"),
        ("geometry_msgs/msg/TwistStamped", "std_msgs/Header header\nTwist twist\n"),
        ("geometry_msgs/msg/Point32", "float32 x\nfloat32 y\nfloat32 z\n"),
        ("geometry_msgs/msg/Polygon", "Point32[] points\n"),
        (
            "shape_msgs/msg/SolidPrimitive",
            "uint8 BOX=1\nuint8 type\nfloat64[<=3] dimensions\ngeometry_msgs/Polygon polygon\n",
        ),
    ];
    let texts: BTreeMap<String, String> =
        texts.into_iter().map(|(name, text)| (name.to_owned(), text.to_owned())).collect();
    for (message, hash) in [
        ("std_msgs/msg/String", "df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18"),
        ("std_msgs/msg/Header", "f49fb3ae2cf070f793645ff749683ac6b06203e41c891e17701b1cb597ce6a01"),
        ("std_msgs/msg/Empty", "20b625256f32d5dbc0d04fee44f43c41e51c70d3502f84b4a08e7a9c26a96312"),
        ("std_msgs/msg/Char", "3ad2d04dd29ba19d04b16659afa3ccaedd691914b02a64e82e252f2fa6a586a9"),
        ("std_msgs/msg/Byte", "41e1a3345f73fe93ede006da826a6ee274af23dd4653976ff249b0f44e3e798f"),
        ("std_msgs/msg/UInt64MultiArray", "fc1c685c2f76bdc6983da025cb25d2db5fb5157b059e300f6d957d86f981b366"),
        ("geometry_msgs/msg/TwistStamped", "5f0fcd4f81d5d06ad9b4c4c63e3ea51b82d6ae4d0558f1d475229b1121db6f64"),
        ("shape_msgs/msg/SolidPrimitive", "2802a15190aadc3f496584df4b0b4c5824d8a0b31aaef839faa75bc34dda38ac"),
    ] {
        let idl = ros2::parse(message, &texts).unwrap_or_else(|error| panic!("{error}"));
        let found = ros2::type_hash(&idl, message).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(found, format!("RIHS01_{hash}"), "{message}");
    }
    let idl = ros2::parse("std_msgs/msg/Empty", &texts).expect("it is read");
    let error = ros2::type_hash(&idl, "std_msgs/msg/String").expect_err("it was not read").to_string();
    assert!(error.contains("no message std_msgs/msg/String was read"), "{error}");
    let error = ros2::parse("std_msgs/msg/None", &texts).expect_err("there is none").to_string();
    assert!(error.contains("message std_msgs/msg/None is not among the given messages"), "{error}");
}
