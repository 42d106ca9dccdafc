//! Parsing of annotations (IDL 4.2 §8.3, XTypes 1.3 §7.3.1.2). They are read at their position and
//! interpreted by the definition that follows.

use takt_xtypes::Extensibility;
use takt_xtypes::definition::{Limit, TryConstruct, TypeSpec, ValueAnnotations};
use takt_xtypes::describe::hash_id;

use super::Parser;
use super::expression::range;
use crate::error::{Location, Result};
use crate::lexer::Kind;
use crate::limits::{MAX_DEPTH, MAX_NAME_LEN};
use crate::symbols::qualified;
use crate::value::Value;

/// Largest member id: 28 bits (XTypes 1.3 §7.3.1.2.1.1).
const MAX_MEMBER_ID: u32 = 0x0fff_ffff;

/// Annotation with the tokens of its parameters.
pub(super) struct Annotation {
    /// Name in lower case, since older files use `@Key`. Scopes are included, as in `vendor::key`,
    /// without a leading `::`.
    pub name: String,
    pub location: Location,
    /// Index of the first token of the parameters, after the parenthesis, if there are any.
    parameters: Option<usize>,
}

pub(super) type Annotations = Vec<Annotation>;

/// Annotations of a type.
pub(super) struct TypeAnnotations {
    pub extensibility: Extensibility,
    pub nested: bool,
    pub autoid_hash: bool,
    pub bit_bound: Option<u16>,
}

/// Annotations of a member.
#[derive(Default)]
pub(super) struct MemberAnnotations {
    pub id: Option<u32>,
    pub hash_id: Option<String>,
    pub values: ValueAnnotations,
    /// Position of `@min`, `@max` or `@range`.
    pub limited: Option<Location>,
    pub key: bool,
    pub optional: bool,
    pub external: bool,
    pub must_understand: bool,
    pub try_construct: TryConstruct,
}

/// Type that contains a member.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Container {
    Struct,
    Union,
}

/// Annotations that affect neither encoding nor type, and are ignored without a warning.
const WITHOUT_EFFECT: [&str; 5] = ["topic", "verbatim", "data_representation", "ignore_literal_names", "service"];

impl Parser<'_> {
    /// Parses all annotations at this position.
    pub(super) fn annotations(&mut self) -> Result<Annotations> {
        let mut found = Vec::new();
        while self.is_symbol('@') {
            let location = self.location();
            self.advance();
            if self.token().kind == Kind::Scope {
                self.advance();
            }
            let Kind::Identifier { name, .. } = &self.token().kind else {
                return Err(self.unexpected("the name of an annotation after '@'"));
            };
            let mut name = name.to_ascii_lowercase();
            self.advance();
            // After a space, `::` begins the type of a member: `@external ::module::T member`.
            while self.token().kind == Kind::Scope && self.token().adjacent {
                self.advance();
                let (part, place) = self.identifier("a name after '::'")?;
                name = qualified(&name, &part.to_ascii_lowercase());
                if name.len() > MAX_NAME_LEN {
                    return Err(place.failure(format!("a qualified name of more than {MAX_NAME_LEN} octets")));
                }
            }
            let parameters = self.take_symbol('(').then_some(self.at);
            if parameters.is_some() {
                self.skip_parameters(location)?;
            }
            found.push(Annotation { name, location, parameters });
        }
        Ok(found)
    }

    fn skip_parameters(&mut self, start: Location) -> Result<()> {
        let mut depth = 1_usize;
        while depth > 0 {
            match self.token().kind {
                Kind::Symbol('(') => depth += 1,
                Kind::Symbol(')') => depth -= 1,
                Kind::End => return Err(start.failure("unterminated annotation: expected ')'")),
                _ => {}
            }
            if depth > MAX_DEPTH {
                return Err(start.failure(format!("more than {MAX_DEPTH} levels of brackets")));
            }
            self.advance();
        }
        Ok(())
    }

    /// Parses the single parameter of an annotation, `(X)` or `(value = X)`.
    fn parameter<T>(&mut self, annotation: &Annotation, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let Some(start) = annotation.parameters else {
            return Err(annotation.location.failure(format!("@{} needs a parameter", annotation.name)));
        };
        let behind = std::mem::replace(&mut self.at, start);
        let is_named = matches!(self.tokens.get(start + 1).map(|token| &token.kind), Some(Kind::Symbol('=')));
        if is_named {
            self.advance();
            self.advance();
        }
        let value = read(self)?;
        self.expect_symbol(')', &format!("after the parameter of @{}", annotation.name))?;
        self.at = behind;
        Ok(value)
    }

    /// Parses a numeric parameter in this range.
    pub(super) fn number<N: TryFrom<i128>>(&mut self, annotation: &Annotation, min: i128, max: i128) -> Result<N> {
        let value = self.parameter(annotation, Self::expression)?;
        if let Value::Integer(number) = value
            && (min..=max).contains(&number)
            && let Ok(number) = N::try_from(number)
        {
            return Ok(number);
        }
        let (name, found) = (&annotation.name, value.describe());
        let message = format!("the parameter of @{name} must be a number from {min} to {max}, not {found}");
        Err(annotation.location.failure(message))
    }

    /// Parses `@flag`, `@flag(TRUE)` or `@flag(FALSE)`.
    pub(super) fn flag(&mut self, annotation: &Annotation) -> Result<bool> {
        if annotation.parameters.is_none() {
            return Ok(true);
        }
        let read = |parser: &mut Self| {
            let word = parser.word().unwrap_or_default().to_ascii_uppercase();
            let value = match word.as_str() {
                "TRUE" => true,
                "FALSE" => false,
                _ => return Err(parser.unexpected("TRUE or FALSE")),
            };
            parser.advance();
            Ok(value)
        };
        self.parameter(annotation, read)
    }

    /// Parses a parameter that is one of these words.
    fn choice<T: Copy>(&mut self, annotation: &Annotation, choices: &[(&str, T)]) -> Result<T> {
        let read = |parser: &mut Self| {
            let word = parser.word().unwrap_or_default();
            let found = choices.iter().find(|(name, _)| *name == word);
            let Some((_, value)) = found else {
                let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
                return Err(parser.unexpected(&names.join(" or ")));
            };
            parser.advance();
            Ok(*value)
        };
        self.parameter(annotation, read)
    }

    /// Interprets `@autoid(HASH)`; HASH is the default parameter.
    pub(super) fn autoid(&mut self, annotation: &Annotation) -> Result<bool> {
        if annotation.parameters.is_none() {
            return Ok(true);
        }
        self.choice(annotation, &[("SEQUENTIAL", false), ("HASH", true)])
    }

    /// Interprets the annotations of a type. `bits` is the maximum `@bit_bound`, if it is
    /// permitted.
    pub(super) fn type_annotations(
        &mut self,
        annotations: &Annotations,
        what: &str,
        bits: Option<u16>,
    ) -> Result<TypeAnnotations> {
        let module = self.modules.last();
        let (autoid_hash, default_nested) = module.map_or((false, false), |m| (m.autoid_hash, m.default_nested));
        let mut found = TypeAnnotations {
            extensibility: self.default_extensibility,
            nested: default_nested && !annotations.iter().any(|annotation| annotation.name == "topic"),
            autoid_hash,
            bit_bound: None,
        };
        let mut stated: Option<Extensibility> = None;
        for annotation in annotations {
            let mut extensibility = None;
            match annotation.name.as_str() {
                "final" => extensibility = Some(Extensibility::Final),
                "appendable" => extensibility = Some(Extensibility::Appendable),
                "mutable" => extensibility = Some(Extensibility::Mutable),
                "extensibility" => extensibility = Some(self.extensibility(annotation)?),
                "nested" => found.nested = self.flag(annotation)?,
                "autoid" => found.autoid_hash = self.autoid(annotation)?,
                "bit_bound" if bits.is_some() => {
                    let most = i128::from(bits.unwrap_or_default());
                    found.bit_bound = Some(self.number(annotation, 1, most)?);
                }
                _ => self.ignore(annotation, what),
            }
            if let Some(extensibility) = extensibility {
                if stated.is_some_and(|stated| stated != extensibility) {
                    return Err(annotation.location.failure("a type has one extensibility: it is stated twice"));
                }
                stated = Some(extensibility);
            }
        }
        found.extensibility = stated.unwrap_or(found.extensibility);
        Ok(found)
    }

    fn extensibility(&mut self, annotation: &Annotation) -> Result<Extensibility> {
        let (last, growing, free) = (Extensibility::Final, Extensibility::Appendable, Extensibility::Mutable);
        // The longer names are those of XTypes 1.1.
        let choices = [
            ("FINAL", last),
            ("APPENDABLE", growing),
            ("MUTABLE", free),
            ("FINAL_EXTENSIBILITY", last),
            ("EXTENSIBLE_EXTENSIBILITY", growing),
            ("MUTABLE_EXTENSIBILITY", free),
        ];
        self.choice(annotation, &choices)
    }

    /// Interprets the annotations of a struct member or a union case.
    pub(super) fn member_annotations(
        &mut self,
        annotations: &Annotations,
        container: Container,
    ) -> Result<MemberAnnotations> {
        let mut found = MemberAnnotations::default();
        let is_struct = container == Container::Struct;
        let what = if is_struct { "a member" } else { "a case" };
        for annotation in annotations {
            match annotation.name.as_str() {
                "id" => {
                    found.id = Some(self.number(annotation, 0, i128::from(MAX_MEMBER_ID))?);
                }
                "hashid" => {
                    found.hash_id = Some(match annotation.parameters {
                        None => String::new(),
                        Some(_) => self.text_parameter(annotation)?,
                    });
                }
                "unit" => found.values.unit = Some(self.text_parameter(annotation)?),
                "min" | "max" | "range" => {
                    found.limited = Some(annotation.location);
                    self.limits(annotation, &mut found.values)?;
                }
                "key" if is_struct => found.key = self.flag(annotation)?,
                "optional" if is_struct => found.optional = self.flag(annotation)?,
                "must_understand" if is_struct => found.must_understand = self.flag(annotation)?,
                "external" | "shared" => found.external = self.flag(annotation)?,
                "try_construct" => found.try_construct = self.try_construct(annotation)?,
                _ => self.ignore(annotation, what),
            }
        }
        if found.id.is_some() && found.hash_id.is_some() {
            let location = annotations.first().map_or(self.location(), |annotation| annotation.location);
            return Err(location.failure("a member has one id: @id and @hashid exclude each other"));
        }
        if found.key && found.optional {
            let location = annotations.first().map_or(self.location(), |annotation| annotation.location);
            return Err(location.failure("a key member cannot be optional"));
        }
        Ok(found)
    }

    /// Interprets `@min(X)`, `@max(X)`, `@range(min = X, max = Y)`.
    fn limits(&mut self, annotation: &Annotation, values: &mut ValueAnnotations) -> Result<()> {
        match annotation.name.as_str() {
            "min" => values.min = Some(self.parameter(annotation, Self::limit)?),
            "max" => values.max = Some(self.parameter(annotation, Self::limit)?),
            _ => {
                let start =
                    annotation.parameters.ok_or_else(|| annotation.location.failure("@range needs parameters"))?;
                let behind = std::mem::replace(&mut self.at, start);
                loop {
                    let place = if self.take_word("min") {
                        &mut values.min
                    } else if self.take_word("max") {
                        &mut values.max
                    } else {
                        return Err(self.unexpected("min = NUMBER or max = NUMBER"));
                    };
                    self.expect_symbol('=', "after the name of the parameter")?;
                    *place = Some(self.limit()?);
                    if !self.take_symbol(',') {
                        break;
                    }
                }
                self.expect_symbol(')', "after the parameters of @range")?;
                self.at = behind;
            }
        }
        let is_empty = match (values.min, values.max) {
            (Some(min), Some(max)) => as_float(min) > as_float(max),
            _ => false,
        };
        if is_empty {
            return Err(annotation.location.failure("the minimum exceeds the maximum"));
        }
        Ok(())
    }

    fn limit(&mut self) -> Result<Limit> {
        let location = self.location();
        match self.expression()? {
            Value::Integer(number) if (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(&number) => {
                Ok(Limit::Integer(number))
            }
            Value::Float(number) if number.is_finite() => Ok(Limit::Float(number)),
            value => Err(location.failure(format!("expected a 64-bit number, not {}", value.describe()))),
        }
    }

    /// Checks `@min`, `@max` and `@range` against the type of their member.
    pub(super) fn check_limits(&self, annotations: &MemberAnnotations, of: &TypeSpec) -> Result<()> {
        let Some(location) = annotations.limited else { return Ok(()) };
        let element = match of {
            TypeSpec::Array { element, .. } => element,
            other => other,
        };
        let element = self.definitions.resolve(element);
        let range = element.and_then(range);
        if range.is_none() && !matches!(element, Some(TypeSpec::Float | TypeSpec::Double)) {
            return Err(location.failure("@min, @max and @range apply to numeric members only"));
        }
        let is_outside = |limit| {
            let bounds = range.map(|(low, high)| (low as f64, high as f64));
            bounds.is_some_and(|(low, high)| !(low..=high).contains(&as_float(limit)))
        };
        if [annotations.values.min, annotations.values.max].into_iter().flatten().any(is_outside) {
            return Err(location.failure("the limit is not a value of the member's type"));
        }
        Ok(())
    }

    /// Interprets `@try_construct`; USE_DEFAULT is the default parameter.
    pub(super) fn try_construct(&mut self, annotation: &Annotation) -> Result<TryConstruct> {
        if annotation.parameters.is_none() {
            return Ok(TryConstruct::UseDefault);
        }
        let choices = [
            ("DISCARD", TryConstruct::Discard),
            ("USE_DEFAULT", TryConstruct::UseDefault),
            ("TRIM", TryConstruct::Trim),
        ];
        self.choice(annotation, &choices)
    }

    fn text_parameter(&mut self, annotation: &Annotation) -> Result<String> {
        match self.parameter(annotation, Self::expression)? {
            Value::Text(text) => Ok(text),
            value => Err(annotation.location.failure(format!(
                "the parameter of @{} must be a string, not {}",
                annotation.name,
                value.describe()
            ))),
        }
    }

    /// Ignores an annotation without effect. Adds a warning, unless it is in `WITHOUT_EFFECT`.
    pub(super) fn ignore(&mut self, annotation: &Annotation, what: &str) {
        if !WITHOUT_EFFECT.contains(&annotation.name.as_str()) {
            self.warn(annotation.location, format!("@{} of {what} has no effect", annotation.name));
        }
    }
}

/// Returns the id of a member: the explicit id, the hash of a name, or the next id of the type.
pub(super) fn member_id(annotations: &MemberAnnotations, name: &str, autoid_hash: bool, next: u32) -> u32 {
    match (&annotations.id, &annotations.hash_id) {
        (Some(id), _) => *id,
        (None, Some(hashed)) => hash_id(if hashed.is_empty() { name } else { hashed }),
        (None, None) if autoid_hash => hash_id(name),
        (None, None) => next,
    }
}

fn as_float(limit: Limit) -> f64 {
    match limit {
        Limit::Integer(number) => number as f64,
        Limit::Float(number) => number,
    }
}
