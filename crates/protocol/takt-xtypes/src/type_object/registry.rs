//! Registry of type objects by identifier, limited in bytes.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use super::identifier::Identifier;
use super::{TypeError, TypeIdentifier, TypeIdentifierWithDependencies, TypeObject};

/// Registry of type objects: the program's own, and those received from peers.
///
/// A received type object is kept only if its hash equals its identifier, so no peer can replace
/// the definition of another peer's type. Nothing is evicted: beyond the limit, insertion fails.
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
    /// Default limit on the serialized bytes of received type objects. They take a small multiple
    /// of it in memory.
    pub const DEFAULT_LIMIT: usize = 4 * 1024 * 1024;

    /// Returns an empty registry with the default limit.
    #[must_use]
    pub const fn new() -> Self {
        Self::with_limit(Self::DEFAULT_LIMIT)
    }

    /// Returns an empty registry that keeps up to this many serialized bytes.
    #[must_use]
    pub const fn with_limit(limit_bytes: usize) -> Self {
        Self { objects: BTreeMap::new(), len_bytes: 0, limit_bytes }
    }

    /// Adds a received definition under the identifier that it hashes to.
    ///
    /// # Errors
    /// Fails if the limit is reached.
    pub fn insert(&mut self, object: TypeObject) -> Result<TypeIdentifier, TypeError> {
        let identifier = object.identifier();
        self.keep(identifier.clone(), object)?;
        Ok(identifier)
    }

    /// Adds a received definition under the given identifier.
    ///
    /// Members of a strongly connected component are not verified: their hash covers the whole
    /// component.
    ///
    /// # Errors
    /// Fails if the definition hashes to another identifier, or if the limit is reached.
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

    /// Adds a definition of this program, which does not count towards the limit.
    pub(crate) fn keep_own(&mut self, identifier: TypeIdentifier, object: TypeObject) {
        self.objects.insert(identifier, object);
    }

    /// Returns the definition of a type.
    #[must_use]
    pub fn get(&self, identifier: &TypeIdentifier) -> Option<&TypeObject> {
        self.objects.get(identifier)
    }

    /// Returns the definition of a type by its inner identifier.
    pub(crate) fn definition(&self, identifier: &Identifier) -> Option<&TypeObject> {
        self.objects.get(identifier)
    }

    /// Returns all definitions, by identifier.
    pub fn iter(&self) -> impl Iterator<Item = (&TypeIdentifier, &TypeObject)> {
        self.objects.iter()
    }

    /// Returns the number of definitions.
    #[must_use]
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Reports whether there are no definitions.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// Returns the direct and indirect dependencies of `root` without a known definition, to be
    /// requested next. The result contains `root` if it is one of them.
    #[must_use]
    pub fn missing(&self, root: &TypeIdentifier) -> Vec<TypeIdentifier> {
        self.closure(root).into_iter().filter(|identifier| !self.objects.contains_key(identifier)).collect()
    }

    /// Returns `root` if it is a hash, and all hashes that it depends on as far as definitions are
    /// known, breadth first.
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

    /// Returns the announced dependencies of a type whose definitions are all known.
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
