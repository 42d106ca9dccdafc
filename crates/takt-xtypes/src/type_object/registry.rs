//! Type objects by identifier, with a bound on their bytes.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use super::identifier::Identifier;
use super::{TypeError, TypeIdentifier, TypeIdentifierWithDependencies, TypeObject};

/// Knows type objects: one's own, and those learned from peers.
///
/// Learned ones are kept only if they hash to the identifier they came under, so no peer can replace the definition
/// of another's type. Nothing is ever evicted: past the limit there is an error.
#[derive(Clone, Debug)]
pub struct TypeRegistry {
    objects: BTreeMap<TypeIdentifier, TypeObject>,
    len_bytes: usize,
    limit_bytes: usize,
}

impl Default for TypeRegistry {
    fn default() -> Self {
        Self::new()
    }
}

impl TypeRegistry {
    /// Serialised bytes of learned type objects that are kept, unless a registry is told otherwise. In memory they
    /// take a small multiple of it.
    pub const DEFAULT_LIMIT: usize = 4 * 1024 * 1024;

    /// An empty registry with the default limit.
    #[must_use]
    pub const fn new() -> Self {
        Self::with_limit(Self::DEFAULT_LIMIT)
    }

    /// An empty registry that learns up to this many serialised bytes.
    #[must_use]
    pub const fn with_limit(limit_bytes: usize) -> Self {
        Self { objects: BTreeMap::new(), len_bytes: 0, limit_bytes }
    }

    /// Learns a definition under the identifier that it hashes to.
    ///
    /// # Errors
    /// If the limit is reached.
    pub fn insert(&mut self, object: TypeObject) -> Result<TypeIdentifier, TypeError> {
        let identifier = object.identifier();
        self.keep(identifier.clone(), object)?;
        Ok(identifier)
    }

    /// Learns a definition under the identifier that someone says it has.
    ///
    /// Members of a strongly connected component are believed: their hash covers all of them at once.
    ///
    /// # Errors
    /// If the definition hashes to another identifier, or the limit is reached.
    pub fn insert_as(&mut self, identifier: &TypeIdentifier, object: TypeObject) -> Result<(), TypeError> {
        let right = match &identifier.0 {
            Identifier::Component(_) => identifier.is_complete() == object.is_complete(),
            _ => object.identifier() == *identifier,
        };
        if !right {
            return Err(TypeError::HashMismatch { identifier: identifier.clone() });
        }
        self.keep(identifier.clone(), object)
    }

    fn keep(&mut self, identifier: TypeIdentifier, object: TypeObject) -> Result<(), TypeError> {
        if self.objects.contains_key(&identifier) {
            return Ok(());
        }
        let len = object.serialized_len();
        if len > self.limit_bytes.saturating_sub(self.len_bytes) {
            return Err(TypeError::Limit { what: "bytes of type definitions", limit: self.limit_bytes });
        }
        self.len_bytes += len;
        self.objects.insert(identifier, object);
        Ok(())
    }

    /// Keeps a definition of this program's own, which counts towards no limit.
    pub(crate) fn keep_own(&mut self, identifier: TypeIdentifier, object: TypeObject) {
        self.objects.insert(identifier, object);
    }

    /// The definition of a type.
    #[must_use]
    pub fn get(&self, identifier: &TypeIdentifier) -> Option<&TypeObject> {
        self.objects.get(identifier)
    }

    /// [`get`](Self::get), by what is within.
    pub(crate) fn definition(&self, identifier: &Identifier) -> Option<&TypeObject> {
        self.objects.get(identifier)
    }

    /// All definitions, by identifier.
    pub fn iter(&self) -> impl Iterator<Item = (&TypeIdentifier, &TypeObject)> {
        self.objects.iter()
    }

    /// How many definitions there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// There is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// The identifiers that `root` needs, directly or not, and whose definitions are not known: what to ask for next.
    /// Contains `root` itself if that is one of them.
    #[must_use]
    pub fn missing(&self, root: &TypeIdentifier) -> Vec<TypeIdentifier> {
        self.closure(root).into_iter().filter(|identifier| !self.objects.contains_key(identifier)).collect()
    }

    /// `root` if it is a hash, and all hashes it depends on as far as definitions are known, breadth first.
    fn closure(&self, root: &TypeIdentifier) -> Vec<TypeIdentifier> {
        let mut found = Vec::new();
        let mut seen = BTreeSet::new();
        root.0.for_each_hash(&mut |hash| found.push(TypeIdentifier(hash.clone())));
        seen.extend(found.iter().cloned());
        let mut next = 0;
        while let Some(identifier) = found.get(next) {
            let dependencies = self.get(identifier).map(TypeObject::dependencies).unwrap_or_default();
            found.extend(dependencies.into_iter().filter(|dependency| seen.insert(dependency.clone())));
            next += 1;
        }
        found
    }

    /// What to announce of a type whose definitions are all here.
    #[must_use]
    pub fn with_dependencies(&self, root: &TypeIdentifier) -> TypeIdentifierWithDependencies {
        let size = |identifier: &TypeIdentifier| {
            let len = self.get(identifier).map_or(0, TypeObject::serialized_len);
            u32::try_from(len).unwrap_or(u32::MAX)
        };
        let dependencies: Vec<_> = self
            .closure(root)
            .into_iter()
            .filter(|identifier| identifier != root)
            .map(|identifier| {
                let size = size(&identifier);
                (identifier, size)
            })
            .collect();
        TypeIdentifierWithDependencies {
            serialized_size: size(root),
            type_id: root.clone(),
            dependent_count: i32::try_from(dependencies.len()).unwrap_or(i32::MAX),
            dependencies,
        }
    }
}
