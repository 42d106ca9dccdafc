//! Tests of fields and SQL filters. Results on payloads equal those on decoded data, for every
//! field of every type. Malformed payloads cause no panic.

use std::fmt::Debug;
use std::sync::Arc;

use takt_testkit::memory::allocations;
use takt_xtypes::dynamic::{DynamicData, DynamicType, Field, FieldPart, Scalar};
use takt_xtypes::sql::{Filter, Query};
use takt_xtypes::{Endianness, Representation, TypeSupport};

use crate::dynamic::dynamic;
use crate::random::{ForEachType, Random, Rng, for_each_type};
use crate::support::{ENDIANNESSES, REPRESENTATIONS, payload};
use crate::zoo::*;

/// Converts a field value to a text that can be compared and printed.
fn printable(scalar: Option<Scalar<'_>>) -> String {
    match scalar {
        Some(Scalar::Text(text)) => format!("text {:?}", text.chars().collect::<String>()),
        Some(other) => format!("{other:?}"),
        None => "absent".to_owned(),
    }
}

/// Collects the paths of all comparable fields in data.
fn paths(ty: &DynamicType, data: &DynamicData, path: &mut Vec<FieldPart>, found: &mut Vec<Vec<FieldPart>>) {
    let mut descend = |parts: &[FieldPart], data: &DynamicData| {
        path.extend_from_slice(parts);
        paths(ty, data, path, found);
        path.truncate(path.len() - parts.len());
    };
    match data {
        DynamicData::Struct(members) => {
            members.iter().for_each(|(name, data)| descend(&[FieldPart::Name(name.to_string())], data));
        }
        DynamicData::Union { member: Some((name, data)), .. } => descend(&[FieldPart::Name(name.to_string())], data),
        DynamicData::Sequence(elements) => {
            for (at, element) in elements.iter().enumerate() {
                descend(&[FieldPart::Index(at as u32)], element);
                // All two-dimensional arrays have two columns.
                descend(&[FieldPart::Index(at as u32 / 2), FieldPart::Index(at as u32 % 2)], element);
            }
        }
        DynamicData::Bytes(bytes) => {
            (0..bytes.len()).for_each(|at| descend(&[FieldPart::Index(at as u32)], &DynamicData::U8(bytes[at])));
        }
        _ if ty.field(path).is_ok() => found.push(path.clone()),
        _ => {}
    }
}

/// Returns all comparable fields in data, with their paths as text.
fn fields(ty: &DynamicType, data: &DynamicData) -> Vec<(String, Field)> {
    let mut found = Vec::new();
    paths(ty, data, &mut Vec::new(), &mut found);
    found.iter().map(|path| (format!("{path:?}"), ty.field(path).expect("paths are those of fields"))).collect()
}

/// Test of the fields of each type.
struct Fields(Rng);

impl ForEachType for Fields {
    fn visit<T: TypeSupport + Random + PartialEq + Clone + Debug>(&mut self) {
        let ty = dynamic::<T>();
        // Fields of all values so far. Those of other values may be absent in a value.
        let mut known: Vec<(String, Field)> = Vec::new();
        for _ in 0..12 {
            let value = T::random(&mut self.0);
            for representation in REPRESENTATIONS {
                for endianness in ENDIANNESSES {
                    let bytes = payload(&value, representation, endianness);
                    let data = ty.decode(&bytes).expect("a value");
                    for (path, field) in fields(&ty, &data) {
                        if !known.iter().any(|(other, _)| *other == path) {
                            known.push((path, field));
                        }
                    }
                    self.compare::<T>(&ty, &known, &bytes);
                }
            }
        }
        assert!(!known.is_empty(), "{}", T::TYPE_NAME);
    }
}

impl Fields {
    /// Compares fields of the payload with those of decoded data: for the payload itself, for
    /// prefixes of it and for random mutations.
    fn compare<T: TypeSupport>(&mut self, ty: &DynamicType, known: &[(String, Field)], bytes: &[u8]) {
        let check = |bytes: &[u8]| {
            let decoded = ty.decode(bytes);
            for (path, field) in known {
                let read = field.read(ty, bytes);
                if let Ok(data) = &decoded {
                    let read = read.unwrap_or_else(|error| panic!("{} {path} {bytes:02x?}: {error}", T::TYPE_NAME));
                    assert_eq!(printable(read), printable(field.get(ty, data)), "{} {path} {bytes:02x?}", T::TYPE_NAME);
                }
            }
        };
        check(bytes);
        for _ in 0..8 {
            check(&bytes[..self.0.below(bytes.len())]);
            let mut bytes = bytes.to_vec();
            for _ in 0..=self.0.below(3) {
                let at = 4 + self.0.below(bytes.len() - 4);
                bytes[at] = if self.0.below(2) == 0 { self.0.next() as u8 } else { 0xff };
            }
            check(&bytes);
        }
    }
}

#[test]
fn field_of_a_payload_equals_that_of_the_decoded_data() {
    for_each_type(&mut Fields(Rng(31)));
}

/// Returns a literal that equals the value of a field or is close to it.
fn literal(rng: &mut Rng, scalar: Option<Scalar<'_>>) -> String {
    match scalar {
        Some(Scalar::Bool(value)) => if value { "true" } else { "FALSE" }.to_owned(),
        Some(Scalar::Integer(value)) => {
            format!("{}", (value + rng.below(3) as i128 - 1).clamp(-1 << 63, (1 << 64) - 1))
        }
        Some(Scalar::Float(value)) => format!("{:e}", value + rng.below(3) as f64 - 1.0),
        Some(Scalar::Enum(value)) => format!("{value}"),
        Some(Scalar::Char(_)) => "'a'".to_owned(),
        Some(Scalar::Text(text)) => format!("'{}'", text.chars().filter(|c| *c != '\'').collect::<String>()),
        None => "'a'".to_owned(),
    }
}

/// Formats a path as in an expression.
fn text(path: &[FieldPart]) -> String {
    let parts = path.iter().map(|part| match part {
        FieldPart::Name(name) => format!(".{name}"),
        FieldPart::Index(index) => format!("[{index}]"),
    });
    parts.collect::<String>()[1..].to_owned()
}

/// Test of filters with random expressions.
struct Filters {
    rng: Rng,
    /// Number of values that did not pass, and of those that passed.
    passed: [usize; 2],
}

impl Filters {
    /// Returns a predicate on a field of one of the two data values.
    fn predicate(&mut self, ty: &DynamicType, data: [&DynamicData; 2]) -> Option<String> {
        let mut found = Vec::new();
        paths(ty, data[self.rng.below(2)], &mut Vec::new(), &mut found);
        let path = found.get(self.rng.below(found.len().max(1)))?;
        let field = ty.field(path).ok()?;
        let scalar = field.get(ty, data[0]).or(field.get(ty, data[1]));
        let value = literal(&mut self.rng, scalar);
        let operator = ["=", "<>", "<", "<=", ">", ">=", "LIKE", "BETWEEN", "NOT BETWEEN"][self.rng.below(9)];
        let name = text(path);
        Some(match operator {
            "BETWEEN" | "NOT BETWEEN" => format!("{name} {operator} {value} AND {}", literal(&mut self.rng, scalar)),
            _ if self.rng.below(4) == 0 => format!("{value} {operator} {name}"),
            _ => format!("{name} {operator} {value}"),
        })
    }
}

impl ForEachType for Filters {
    fn visit<T: TypeSupport + Random + PartialEq + Clone + Debug>(&mut self) {
        let ty = Arc::new(dynamic::<T>());
        for _ in 0..100 {
            let value = T::random(&mut self.rng);
            let representation = REPRESENTATIONS[self.rng.below(2)];
            let bytes = payload(&value, representation, ENDIANNESSES[self.rng.below(2)]);
            let data = ty.decode(&bytes).expect("a value");
            let other = payload(&T::random(&mut self.rng), representation, Endianness::Little);
            let other = ty.decode(&other).expect("a value");
            let mut expression = String::new();
            for count in 0..=self.rng.below(3) {
                let Some(predicate) = self.predicate(&ty, [&data, &other]) else { continue };
                if count > 0 && !expression.is_empty() {
                    expression.push_str([" AND ", " OR ", " AND NOT "][self.rng.below(3)]);
                }
                expression.push_str(&predicate);
            }
            let none: [&str; 0] = [];
            // Some predicates are invalid: numbers have no patterns.
            let Ok(filter) = Filter::new(Arc::clone(&ty), &expression, &none) else { continue };
            let mut result = false;
            let count = allocations(|| result = filter.matches(&bytes).expect("a value"));
            assert_eq!(count, 0, "{expression}");
            assert_eq!(result, filter.matches_data(&data), "{expression} {data:?}");
            self.passed[usize::from(result)] += 1;
        }
    }
}

#[test]
fn filter_agrees_on_payload_and_data_and_does_not_allocate() {
    let mut filters = Filters { rng: Rng(32), passed: [0; 2] };
    for_each_type(&mut filters);
    assert!(filters.passed.iter().all(|count| *count > 200), "{:?}", filters.passed);
}

fn filter<T: TypeSupport>(expression: &str, parameters: &[&str]) -> Result<Filter, String> {
    Filter::new(Arc::new(dynamic::<T>()), expression, parameters).map_err(|error| error.to_string())
}

/// Reports whether a value passes the filter.
fn passes<T: TypeSupport>(value: &T, expression: &str, parameters: &[&str]) -> bool {
    let filter = filter::<T>(expression, parameters).expect(expression);
    filter.matches(&payload(value, Representation::Xcdr2, Endianness::Little)).expect("a value")
}

#[test]
fn every_operator_works_on_every_kind_of_field() {
    let shape = ShapeType { color: "BLUE".into(), x: -5, y: 7, shapesize: 30, ..Default::default() };
    for (expression, result) in [
        ("x = -5 AND y = 0x7", true),
        ("x == -5 AND y != 8", true),
        ("x > y", false),
        ("y>=7 and y<=7", true),
        ("shapesize BETWEEN 30 AND 30", true),
        ("shapesize NOT BETWEEN 1 AND 29.5", true),
        ("color = 'BLUE' OR color = 'RED'", true),
        ("color = `BLUE'", true),
        ("color LIKE 'B%' AND NOT color LIKE '_L'", true),
        ("color MATCH 'RED,BL*'", true),
        ("color > 'BLACK' AND color < 'GREEN'", true),
        ("color <> 'BLUE'", false),
        ("7 = y", true),
        ("1 = 1", true),
        ("", true),
        ("x < 1e3 AND x > -.5e1", false),
        ("additional_payload_size[0] <> 1", false),
    ] {
        assert_eq!(passes(&shape, expression, &[]), result, "{expression}");
    }
    let all = Primitives {
        flag: true,
        i64: i64::MIN,
        u64: u64::MAX,
        double: 0.5,
        float: 0.1,
        letter: takt_xtypes::Char8(b'q'),
        ..Default::default()
    };
    for (expression, result) in [
        ("flag = TRUE", true),
        ("flag <> true", false),
        ("i64 = -9223372036854775808", true),
        ("u64 = 18446744073709551615 AND u64 > i64", true),
        ("double = 0.5 AND double < float", false),
        ("float BETWEEN 0.0999 AND 0.1001", true),
        ("letter = 'q' AND letter LIKE '_'", true),
        ("octet = 0 AND i8 = octet", true),
    ] {
        assert_eq!(passes(&all, expression, &[]), result, "{expression}");
    }
    let nested =
        Nested { mutable: Mutable { point: Point { x: 3, y: 1.5 }, ..Default::default() }, ..Default::default() };
    assert!(passes(&nested, "mutable.point.x = 3 AND mutable.point.y > 1 AND mutable.fixed[2] = 0", &[]));
    let collections = Collections { matrix: [[1., 2.], [3., 4.], [5., 6.]], ..Default::default() };
    assert!(passes(&collections, "matrix[1][0] = 3 AND matrix[2][1] = 6 AND fixed[1] = 0", &[]));
}

#[test]
fn enumerators_may_be_quoted_unquoted_or_numbers() {
    let value = Enums { color: Color::Blue, ..Default::default() };
    for (expression, parameters, result) in [
        ("color = 'Blue'", &[][..], true),
        ("color = Blue", &[], true),
        ("color = 7", &[], true),
        ("color > 'Green'", &[], true),
        ("color = %0", &["'Blue'"], true),
        ("color = %0", &["Blue"], true),
        ("color = %0", &["7"], true),
        ("color = %0", &["Red"], false),
        ("colors[0] = Red", &[], false),
        ("NOT colors[0] = Red", &[], false),
        ("mask = 0", &[], true),
    ] {
        assert_eq!(passes(&value, expression, parameters), result, "{expression} {parameters:?}");
    }
    assert!(filter::<Enums>("color = 'Pink'", &[]).is_err());
    assert!(filter::<Enums>("color = Pink", &[]).is_err());
    assert!(filter::<Enums>("color = small", &[]).is_err());
}

#[test]
fn doubled_quote_within_a_string_is_one_quote() {
    let value = ShapeType { color: "it's 'so'".to_owned(), ..ShapeType::default() };
    assert!(passes(&value, "color = 'it''s ''so'''", &[]));
    assert!(passes(&ShapeType::default(), "color = ''", &[]));
    assert!(filter::<ShapeType>("color = 'it''s", &[]).is_err_and(|text| text.contains("without a closing quote")));
}

#[test]
fn parameters_have_the_type_of_the_field_quoted_or_not() {
    let shape = ShapeType { color: "BLUE".into(), x: 12, ..Default::default() };
    for blue in ["BLUE", "'BLUE'", "`BLUE'"] {
        assert!(passes(&shape, "color = %0 AND x > %1", &[blue, "11"]), "{blue}");
    }
    assert!(!passes(&shape, "color = %0", &["it's"]));
    assert!(passes(&shape, "color LIKE %1", &["", "%LU%"]));
    assert!(passes(&shape, "x BETWEEN %0 AND %1", &[" 12 ", "1.25e1"]));
    assert!(passes(&Primitives::default(), "flag = %0", &["False"]));
    let mut filter = filter::<ShapeType>("x > %0", &["5"]).expect("a filter");
    let bytes = payload(&shape, Representation::Xcdr1, Endianness::Big);
    assert_eq!(filter.matches(&bytes), Ok(true));
    filter.set_parameters(&["12"]).expect("a number");
    assert_eq!(filter.matches(&bytes), Ok(false));
    assert!(filter.set_parameters(&["twelve"]).is_err() && filter.set_parameters::<&str>(&[]).is_err());
    assert_eq!(filter.matches(&bytes), Ok(false), "refused parameters change nothing");
    filter.set_parameters(&["0xB", "unused"]).expect("a parameter more than needed is ignored");
    assert_eq!(filter.matches(&bytes), Ok(true));
}

#[test]
fn predicate_on_an_absent_member_is_unknown_and_so_is_its_negation() {
    let absent = FinalOptional::default();
    for operator in ["=", "<>", "<", ">"] {
        assert!(!passes(&absent, &format!("number {operator} 0"), &[]), "{operator}");
        assert!(!passes(&absent, &format!("NOT number {operator} 0"), &[]), "{operator}");
    }
    let unknown = "number BETWEEN 5 AND 6";
    for condition in ["NOT", "NOT NOT", "NOT 1 = 1 OR NOT", "1 = 1 AND NOT"] {
        let condition = condition.replace("1 = 1", "number = number");
        assert!(!passes(&absent, &format!("{condition} {unknown}"), &[]), "{condition}");
    }
    assert!(!passes(&absent, "number NOT BETWEEN 5 AND 6", &[]));
    assert!(!passes(&absent, "NOT (number = 1 AND NOT number = 2)", &[]));
    assert!(passes(&FinalOptional { number: Some(4), ..Default::default() }, "number NOT BETWEEN 5 AND 6", &[]));
    let unions = Unions { b: FinalUnion::Radius(3.0), ..Default::default() };
    assert!(!passes(&unions, "b.Radius = 3 AND NOT b.Point.x = 0", &[]));
    assert!(passes(&unions, "b.Radius = 3 OR NOT b.Point.x = 0", &[]));
    assert!(passes(&unions, "NOT (b.Point.x = 0 AND b.Radius = 4)", &[]), "false AND unknown is false");
    assert!(!passes(&unions, "NOT (b.Point.x = 0 OR b.Radius = 4)", &[]), "false OR unknown is unknown");
}

#[test]
fn incomparable_operands_are_refused_with_their_position() {
    let refused = |expression: &str| filter::<ShapeType>(expression, &[]).expect_err(expression);
    for (expression, error) in [
        ("colour = 'RED'", "at position 0: ShapeType has no member 'colour'"),
        ("x = 1 AND colour = 'RED'", "at position 10: ShapeType has no member 'colour'"),
        ("x = 'RED'", "at position 4: expected an integer"),
        ("color = 5", "at position 8: expected a string"),
        ("color = x", "at position 8: an integer compared with a string"),
        ("x LIKE '5'", "at position 7: expected an integer"),
        ("x LIKE 5", "at position 0: LIKE and MATCH apply to strings only"),
        ("x = TRUE", "at position 4: expected an integer"),
        ("x = %3", "at position 4: parameter %3 has no value"),
        ("x.y = 3", "at position 0: 'y' is not a member"),
        ("x[0] = 3", "at position 0: [0] of a value that is not a sequence or array"),
        (
            "additional_payload_size = 3",
            "at position 0: a structure, union or collection cannot be compared; compare its members or elements",
        ),
        ("'a' = 1", "at position 6: an integer compared with a string"),
    ] {
        assert_eq!(refused(expression), error, "{expression}");
    }
    let error = filter::<ShapeType>("x = %0", &["many"]).expect_err("the parameter is not a number");
    assert_eq!(error, "at position 4: parameter %0 = many is not an integer");
    assert!(filter::<Collections>("fixed[3] = 1", &[]).is_err());
    assert!(filter::<Collections>("matrix[1] = 1", &[]).is_err());
    let many = vec!["0"; 101];
    assert!(filter::<ShapeType>("x = 1", &many).is_err());
    assert!(filter::<ShapeType>("x = 1", &[&"0".repeat(9000)]).is_err());
}

#[test]
fn query_orders_by_its_fields_in_order_of_significance() {
    let ty = Arc::new(dynamic::<ShapeType>());
    let none: [&str; 0] = [];
    let query = Query::new(Arc::clone(&ty), "x > 0 ORDER BY color, x", &none).expect("a query");
    let shapes = [("RED", 2), ("BLUE", 9), ("RED", 1), ("GREEN", -1)];
    let payloads = shapes.map(|(color, x)| {
        payload(&ShapeType { color: color.into(), x, ..Default::default() }, Representation::Xcdr2, Endianness::Little)
    });
    let mut order: Vec<usize> = (0..4).filter(|at| query.filter().matches(&payloads[*at]) == Ok(true)).collect();
    order.sort_by(|a, b| query.compare(&payloads[*a], &payloads[*b]));
    assert!(query.is_ordered());
    assert_eq!(order, [1, 2, 0]);
    assert!(Query::new(Arc::clone(&ty), "ORDER BY colour", &none).is_err());
    assert!(!Query::new(ty, "x > 0", &none).expect("a query").is_ordered());
}

#[test]
fn evaluation_stops_when_its_steps_run_out() {
    let shape = ShapeType { color: "x".repeat(100), ..Default::default() };
    let bytes = payload(&shape, Representation::Xcdr2, Endianness::Little);
    for (expression, steps_min) in [
        ("x = 0 OR y = 1", 2),
        ("color LIKE '%xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxy'", 2_000),
        ("color MATCH '*[a-z][a-z][a-z][a-z][a-z][a-z][a-z][a-z][a-z]y'", 1_700),
        ("x = 1 OR color LIKE '%x_xxxxxxxxxxxxxxxxxy' OR color LIKE '%_xxxxxxxxxxxxxxxxxxxxy'", 3_000),
    ] {
        let filter = filter::<ShapeType>(expression, &[]).expect(expression);
        let mut left = u64::from(u32::MAX);
        let verdict = filter.matches_within(&bytes, &mut left).expect("a value");
        assert_eq!(verdict, Some(filter.matches(&bytes).expect("a value")), "{expression}");
        let cost = u64::from(u32::MAX) - left;
        assert!(cost >= steps_min, "{expression}: {cost}");
        let (mut enough, mut too_few) = (cost, cost - 1);
        assert_eq!(filter.matches_within(&bytes, &mut enough), Ok(verdict), "{expression}");
        assert_eq!(filter.matches_within(&bytes, &mut too_few), Ok(None), "{expression}");
    }
}
