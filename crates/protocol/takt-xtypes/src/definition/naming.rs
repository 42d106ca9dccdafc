//! Type identifiers of types defined at run time: strongly connected components by Tarjan's
//! algorithm. A component is named after all types that it refers to (XTypes 1.3 §7.3.4.9).

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::{Definition, DefinitionId, Definitions, MemberDefinition, TryConstruct, TypeSpec};
use crate::describe::TypeIdentifiers;
use crate::dynamic::MAX_NESTING;
use crate::type_object::build::{self, CaseParts, MemberParts, StructParts, TypeObjects, UnionParts};
use crate::type_object::identifier::{EquivalenceHash, Identifier};
use crate::type_object::kind::MemberFlag;
use crate::type_object::{Object, TypeError, TypeObject, TypeRegistry, component_hash};

/// Returns the identifiers of a type. Adds all type objects that it needs to the registry.
pub(super) fn name(
    definitions: &Definitions,
    root: DefinitionId,
    registry: &mut TypeRegistry,
) -> Result<TypeIdentifiers, TypeError> {
    let mut naming =
        Naming { definitions, registry, known: BTreeMap::new(), open: Vec::new(), indexes: BTreeMap::new(), depth: 0 };
    naming.visit(root)?;
    naming.identifiers_of(root)
}

struct Naming<'a> {
    definitions: &'a Definitions,
    registry: &'a mut TypeRegistry,
    known: BTreeMap<DefinitionId, TypeIdentifiers>,
    /// Types whose component is not complete yet.
    open: Vec<DefinitionId>,
    indexes: BTreeMap<DefinitionId, usize>,
    depth: u8,
}

impl<'a> Naming<'a> {
    /// Names a type. Returns the position of the outermost open type that it refers back to; `None`
    /// if the type is named.
    fn visit(&mut self, id: DefinitionId) -> Result<Option<usize>, TypeError> {
        if self.known.contains_key(&id) {
            return Ok(None);
        }
        if let Some(&place) = self.indexes.get(&id) {
            return Ok(Some(place));
        }
        if self.depth >= MAX_NESTING {
            return Err(TypeError::Limit { what: "levels of types", limit: usize::from(MAX_NESTING) });
        }
        let index = self.open.len();
        self.open.push(id);
        self.indexes.insert(id, index);
        self.depth += 1;
        let (mut lowest, mut is_recursive) = (index, false);
        for part in self.definition(id)?.parts() {
            let place = self.visit(part)?;
            is_recursive |= place == Some(index);
            lowest = lowest.min(place.unwrap_or(index));
        }
        self.depth -= 1;
        if lowest < index {
            return Ok(Some(lowest));
        }
        let component = self.open.split_off(index);
        for id in &component {
            self.indexes.remove(id);
        }
        if component.len() == 1 && !is_recursive {
            let identifiers = self.build(id)?.keep_own(self.registry);
            self.known.insert(id, identifiers);
        } else {
            self.close(component)?;
        }
        Ok(None)
    }

    /// Names all types of a strongly connected component.
    fn close(&mut self, mut component: Vec<DefinitionId>) -> Result<(), TypeError> {
        let definitions = self.definitions;
        component.sort_by_key(|id| definitions.get(*id).map(Definition::name));
        self.name_component(&component, EquivalenceHash::default(), EquivalenceHash::default());
        let (minimal, complete): (Vec<_>, Vec<_>) = self.build_component(&component)?.into_iter().unzip();
        self.name_component(&component, component_hash(&minimal), component_hash(&complete));
        for (id, (minimal, complete)) in component.iter().zip(self.build_component(&component)?) {
            let identifiers = self.identifiers_of(*id)?;
            self.registry.keep_own(identifiers.minimal, TypeObject(minimal));
            self.registry.keep_own(identifiers.complete, TypeObject(complete));
        }
        Ok(())
    }

    fn name_component(&mut self, component: &[DefinitionId], minimal: EquivalenceHash, complete: EquivalenceHash) {
        for (index, id) in component.iter().enumerate() {
            self.known.insert(*id, TypeIdentifiers::in_component(minimal, complete, component.len(), index));
        }
    }

    fn build_component(&self, component: &[DefinitionId]) -> Result<Vec<(Object, Object)>, TypeError> {
        let both = |id: &DefinitionId| {
            let TypeObjects { minimal, complete } = self.build(*id)?;
            Ok((Object::Minimal(minimal), Object::Complete(complete)))
        };
        component.iter().map(both).collect()
    }

    fn definition(&self, id: DefinitionId) -> Result<&'a Definition, TypeError> {
        self.definitions.get(id).ok_or(TypeError::Invalid { what: "a type that is declared but not defined" })
    }

    fn identifiers_of(&self, id: DefinitionId) -> Result<TypeIdentifiers, TypeError> {
        self.known.get(&id).cloned().ok_or(TypeError::Invalid { what: "a type that is declared but not defined" })
    }

    fn build(&self, id: DefinitionId) -> Result<TypeObjects, TypeError> {
        Ok(match self.definition(id)? {
            Definition::Struct(structure) => {
                let members = structure.members.iter().map(|member| self.member(member));
                let members: Vec<MemberParts<'_>> = members.collect::<Result<_, _>>()?;
                let parts = StructParts {
                    name: &structure.name,
                    extensibility: structure.extensibility,
                    nested: structure.nested,
                    autoid_hash: structure.autoid_hash,
                    base: structure.base.map(|base| self.identifiers_of(base)).transpose()?.unwrap_or_default(),
                };
                parts.build(members)
            }
            Definition::Union(union) => {
                let cases = union.cases.iter().map(|case| {
                    Ok(CaseParts {
                        name: &case.name,
                        id: case.id,
                        flags: flags(case.try_construct)
                            .with(MemberFlag::IS_EXTERNAL, case.external)
                            .with(MemberFlag::IS_DEFAULT, case.default),
                        labels: &case.labels,
                        builtin: build::builtin(case.hash_id.as_deref(), &case.values),
                        of: self.identifiers(&case.of, 0)?,
                    })
                });
                let cases: Vec<CaseParts<'_>> = cases.collect::<Result<_, TypeError>>()?;
                let parts = UnionParts {
                    name: &union.name,
                    extensibility: union.extensibility,
                    nested: union.nested,
                    autoid_hash: union.autoid_hash,
                    key: union.key,
                    discriminator: self.identifiers(&union.discriminator, 0)?,
                };
                parts.build(cases)
            }
            Definition::Enum(enumeration) => {
                let literals = enumeration.literals.iter().enumerate();
                let literals =
                    literals.map(|(index, (name, value))| (name.as_str(), *value, enumeration.default == Some(index)));
                build::enumeration(&enumeration.name, enumeration.extensibility, enumeration.bit_bound, literals)
            }
            Definition::Bitmask(bitmask) => {
                let named = bitmask.flags.iter().map(|(name, position)| (name.as_str(), *position));
                build::bitmask(&bitmask.name, bitmask.bit_bound, named)
            }
            Definition::Alias(alias) => build::alias(&alias.name, self.identifiers(&alias.of, 0)?),
        })
    }

    fn member<'m>(&self, member: &'m MemberDefinition) -> Result<MemberParts<'m>, TypeError> {
        Ok(MemberParts {
            name: &member.name,
            id: member.id,
            flags: flags(member.try_construct)
                .with(MemberFlag::IS_EXTERNAL, member.external)
                .with(MemberFlag::IS_OPTIONAL, member.optional)
                .with(MemberFlag::IS_MUST_UNDERSTAND, member.must_understand)
                .with(MemberFlag::IS_KEY, member.key),
            builtin: build::builtin(member.hash_id.as_deref(), &member.values),
            of: self.identifiers(&member.of, 0)?,
        })
    }

    /// Returns the identifiers of a member's type, all of whose parts are named.
    fn identifiers(&self, spec: &TypeSpec, depth: u8) -> Result<TypeIdentifiers, TypeError> {
        if depth >= MAX_NESTING {
            return Err(TypeError::Limit { what: "levels of types", limit: usize::from(MAX_NESTING) });
        }
        Ok(TypeIdentifiers::same(match spec {
            TypeSpec::Boolean => Identifier::Boolean,
            TypeSpec::Octet => Identifier::Byte,
            TypeSpec::Int8 => Identifier::Int8,
            TypeSpec::Uint8 => Identifier::Uint8,
            TypeSpec::Int16 => Identifier::Int16,
            TypeSpec::Uint16 => Identifier::Uint16,
            TypeSpec::Int32 => Identifier::Int32,
            TypeSpec::Uint32 => Identifier::Uint32,
            TypeSpec::Int64 => Identifier::Int64,
            TypeSpec::Uint64 => Identifier::Uint64,
            TypeSpec::Float => Identifier::Float32,
            TypeSpec::Double => Identifier::Float64,
            TypeSpec::Char => Identifier::Char8,
            TypeSpec::WChar => Identifier::Char16,
            TypeSpec::String { bound } => Identifier::string8(*bound),
            TypeSpec::WString { bound } => Identifier::string16(*bound),
            TypeSpec::Sequence { element, external, bound } => {
                return Ok(self.identifiers(element, depth + 1)?.sequence(*bound as usize, *external));
            }
            TypeSpec::Array { element, dimensions } => {
                return Ok(self.identifiers(element, depth + 1)?.array(dimensions, false));
            }
            TypeSpec::Map { key, element, bound } => {
                let (key, element) = (self.identifiers(key, depth + 1)?, self.identifiers(element, depth + 1)?);
                return Ok(key.map_to(element, *bound as usize));
            }
            TypeSpec::Named(id) => return self.identifiers_of(*id),
        }))
    }
}

/// Returns the member flags of `@try_construct`.
fn flags(try_construct: TryConstruct) -> MemberFlag {
    match try_construct {
        TryConstruct::Discard => MemberFlag::TRY_CONSTRUCT1,
        TryConstruct::UseDefault => MemberFlag::TRY_CONSTRUCT2,
        TryConstruct::Trim => MemberFlag::TRY_CONSTRUCT1 | MemberFlag::TRY_CONSTRUCT2,
    }
}
