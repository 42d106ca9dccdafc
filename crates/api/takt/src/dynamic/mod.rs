//! Topics whose types are known only at run time: learned from the network, or opaque and handled
//! as bytes (XTypes 1.3 §7.5.2).
//!
//! A [`DynamicTypeSupport`] describes a type at run time, as [`TypeSupport`] describes a derived
//! type. [`Subscriber::create_dynamic_datareader`](crate::Subscriber::create_dynamic_datareader)
//! and [`Publisher::create_dynamic_datawriter`](crate::Publisher::create_dynamic_datawriter) create
//! endpoints from it that match endpoints of the same type name. It is learned by
//! [`DomainParticipant::learn_type`](crate::DomainParticipant::learn_type), built from a type of
//! the program, or opaque.
//!
//! Intended for tools: unlike [`DataReader`](crate::DataReader) and
//! [`DataWriter`](crate::DataWriter), these endpoints allocate for each sample.

mod key;
mod learning;
mod policies;
mod reader;
mod writer;

pub use learning::{TypeComparison, TypeLearning, TypeUnavailable};
pub use policies::{ReaderPolicies, WriterPolicies, reader_policies_for, writer_policies_for};
pub use reader::{DynamicDataReader, DynamicSample};
pub use writer::DynamicDataWriter;

pub(crate) use key::key_extractor;
pub(crate) use learning::announce;

use std::fmt;
use std::sync::Arc;

use takt_core::Participant;
use takt_xtypes::TypeSupport;
use takt_xtypes::dynamic::DynamicType;
use takt_xtypes::type_object::{TypeError, TypeIdentifier, TypeInformation, TypeRegistry};

use crate::{Error, Result};

/// Type of a topic as a run-time object. Clones refer to the same type.
#[derive(Clone)]
pub struct DynamicTypeSupport {
    inner: Arc<Inner>,
}

struct Inner {
    type_name: String,
    has_key: bool,
    known: Option<Known>,
}

/// Description of a type that is not opaque.
struct Known {
    type_: DynamicType,
    information: TypeInformation,
    types: TypeRegistry,
}

impl DynamicTypeSupport {
    /// Returns the description of a type of the program.
    ///
    /// # Errors
    /// [`Error::TypeUnavailable`] if the type exceeds a limit of dynamic types.
    pub fn of<T: TypeSupport>() -> Result<Self> {
        let mut types = TypeRegistry::new();
        let information = T::type_information(&mut types);
        let root = information.complete.type_id.clone();
        Self::learned(T::TYPE_NAME.to_owned(), T::HAS_KEY, &root, information, types)
    }

    /// Builds a type from an endpoint's TypeInformation and the definitions in `types`.
    ///
    /// # Errors
    /// [`Error::TypeUnavailable`] if a definition is missing or the type exceeds a limit of dynamic
    /// types.
    pub fn new(information: TypeInformation, types: TypeRegistry) -> Result<Self> {
        let root = &information.complete.type_id;
        let unusable = |error: TypeError| {
            let what = error.to_string();
            TypeUnavailable::Unusable { type_name: root.to_string(), what, source: Some(error) }
        };
        let type_ = DynamicType::new(root, &types).map_err(unusable)?;
        let (type_name, has_key) = (type_.name().to_owned(), type_.has_key());
        Ok(Self { inner: Arc::new(Inner { type_name, has_key, known: Some(Known { type_, information, types }) }) })
    }

    /// Returns an opaque type: only its name and whether it has a key are known. Samples are bytes.
    /// Samples whose key hash is not transmitted all belong to one instance.
    #[must_use]
    pub fn opaque(type_name: &str, has_key: bool) -> Self {
        Self { inner: Arc::new(Inner { type_name: type_name.to_owned(), has_key, known: None }) }
    }

    /// Builds a learned type. `type_name` and `has_key` are those of the endpoint and take
    /// precedence over the definition: the name may be an alias, and remote endpoints match by it.
    fn learned(
        type_name: String,
        has_key: bool,
        root: &TypeIdentifier,
        information: TypeInformation,
        types: TypeRegistry,
    ) -> Result<Self> {
        let unusable = |what: String, source: Option<TypeError>| {
            Error::from(TypeUnavailable::Unusable { type_name: type_name.clone(), what, source })
        };
        let type_ = DynamicType::new(root, &types).map_err(|error| unusable(error.to_string(), Some(error)))?;
        if type_.has_key() != has_key {
            let what = "its definition and its endpoint disagree on whether it has a key";
            return Err(unusable(what.to_owned(), None));
        }
        let known = Some(Known { type_, information, types });
        Ok(Self { inner: Arc::new(Inner { type_name, has_key, known }) })
    }

    /// Returns the type name by which endpoints match.
    #[must_use]
    pub fn type_name(&self) -> &str {
        &self.inner.type_name
    }

    /// Reports whether the type has a key, so that the topic has instances.
    #[must_use]
    pub fn has_key(&self) -> bool {
        self.inner.has_key
    }

    /// Returns the dynamic type; `None` if it is opaque.
    #[must_use]
    pub fn dynamic_type(&self) -> Option<&DynamicType> {
        self.inner.known.as_ref().map(|known| &known.type_)
    }

    /// Registers the type with the core. Returns the TypeInformation to announce.
    pub(crate) fn announce(&self, core: &mut Participant) -> Option<Vec<u8>> {
        let known = self.inner.known.as_ref()?;
        learning::offer(core, &known.types, &known.information).then(|| known.information.to_bytes())
    }
}

impl fmt::Debug for DynamicTypeSupport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DynamicTypeSupport")
            .field("type_name", &self.inner.type_name)
            .field("has_key", &self.inner.has_key)
            .field("opaque", &self.inner.known.is_none())
            .finish()
    }
}
