//! Parsing and validation of the `#[dds(...)]` attributes.

use crate::names::{NameCase, identifier, plain_name, scoped_name};
use md5::{Digest, Md5};
use proc_macro2::TokenStream;
use quote::quote;
use syn::meta::ParseNestedMeta;
use syn::spanned::Spanned;
use syn::{Attribute, Error, Expr, ExprArray, Ident, LitInt, LitStr, Path, Result, Type};

/// Extensibility kind of a type.
#[derive(Clone, Copy)]
pub(crate) enum Extensibility {
    Final,
    Appendable,
    Mutable,
}

impl Extensibility {
    pub(crate) fn tokens(self) -> TokenStream {
        match self {
            Self::Final => quote!(__xtypes::Extensibility::Final),
            Self::Appendable => quote!(__xtypes::Extensibility::Appendable),
            Self::Mutable => quote!(__xtypes::Extensibility::Mutable),
        }
    }
}

/// Attributes of the type.
pub(crate) struct Container {
    pub krate: Path,
    pub name: Option<String>,
    pub extensibility: Extensibility,
    pub nested: bool,
    pub default: bool,
    pub autoid_hash: bool,
    pub bit_bound: Option<LitInt>,
    pub discriminator: Option<Type>,
    pub key: bool,
    pub rename_all: Option<NameCase>,
}

/// Attributes that a type may have.
const OF_TYPES: &str =
    "name, rename_all, extensibility, nested, default, autoid, bit_bound, discriminator, key or crate";
/// Attributes that a field may have.
const OF_FIELDS: &str = "key, name, id, hashid, bound, must_understand, optional, default or base";
/// Attributes that a variant may have.
const OF_VARIANTS: &str = "case, default, name, id or bound";

impl Container {
    pub(crate) fn parse(attributes: &[Attribute]) -> Result<Self> {
        let mut parsed = Self {
            krate: syn::parse_quote!(::takt::generated),
            name: None,
            extensibility: Extensibility::Appendable,
            nested: false,
            default: false,
            autoid_hash: false,
            bit_bound: None,
            discriminator: None,
            key: false,
            rename_all: None,
        };
        for_each(attributes, |meta, name| {
            match name {
                "rename_all" => parsed.rename_all = Some(NameCase::parse(&meta.value()?.parse()?)?),
                "crate" => parsed.krate = meta.value()?.parse::<LitStr>()?.parse()?,
                "name" => parsed.name = Some(scoped_name(&meta.value()?.parse()?)?),
                "extensibility" => parsed.extensibility = extensibility(&meta.value()?.parse()?)?,
                "nested" => parsed.nested = true,
                "default" => parsed.default = true,
                "autoid" => parsed.autoid_hash = autoid(&meta.value()?.parse()?)?,
                "bit_bound" => parsed.bit_bound = Some(meta.value()?.parse()?),
                "discriminator" => parsed.discriminator = Some(meta.value()?.parse::<LitStr>()?.parse()?),
                "key" => parsed.key = true,
                _ => return Err(unknown(meta, name, OF_TYPES)),
            }
            Ok(())
        })?;
        Ok(parsed)
    }

    /// Returns the IDL name for the given Rust name.
    pub(crate) fn type_name(&self, ident: &Ident) -> String {
        self.name.clone().unwrap_or_else(|| plain_name(ident))
    }
}

/// Source of a member id.
pub(crate) enum IdSource {
    /// The id of the previous member plus one, or the hash of the name if the type sets `autoid =
    /// "hash"`.
    Auto,
    Given(u32),
    /// The hash of this name, or of the member's own name.
    Hash(Option<String>),
}

/// Attributes of a field.
pub(crate) struct Field {
    pub key: bool,
    pub name: Option<String>,
    pub id: IdSource,
    pub optional: bool,
    pub bound: Option<Expr>,
    pub must_understand: bool,
    pub default: Option<Expr>,
    pub base: bool,
}

impl Field {
    pub(crate) fn parse(attributes: &[Attribute]) -> Result<Self> {
        let mut parsed = Self {
            key: false,
            name: None,
            id: IdSource::Auto,
            optional: false,
            bound: None,
            must_understand: false,
            default: None,
            base: false,
        };
        for_each(attributes, |meta, name| {
            match name {
                "key" => parsed.key = true,
                "id" => parsed.id = IdSource::Given(member_id(&meta.value()?.parse()?)?),
                "hashid" if meta.input.peek(syn::Token![=]) => {
                    parsed.id = IdSource::Hash(Some(meta.value()?.parse::<LitStr>()?.value()));
                }
                "hashid" => parsed.id = IdSource::Hash(None),
                "optional" => parsed.optional = true,
                "bound" => parsed.bound = Some(meta.value()?.parse()?),
                "must_understand" => parsed.must_understand = true,
                "default" => parsed.default = Some(meta.value()?.parse()?),
                "base" => parsed.base = true,
                "name" => parsed.name = Some(identifier(&meta.value()?.parse()?)?),
                _ => return Err(unknown(meta, name, OF_FIELDS)),
            }
            Ok(())
        })?;
        Ok(parsed)
    }
}

/// Attributes of a variant.
pub(crate) struct Variant {
    pub labels: Vec<Expr>,
    pub default: bool,
    pub name: Option<String>,
    pub id: Option<u32>,
    pub bound: Option<Expr>,
}

impl Variant {
    pub(crate) fn parse(attributes: &[Attribute]) -> Result<Self> {
        let mut parsed = Self { labels: Vec::new(), default: false, name: None, id: None, bound: None };
        for_each(attributes, |meta, name| {
            match name {
                "case" => parsed.labels = labels(meta)?,
                "default" => parsed.default = true,
                "id" => parsed.id = Some(member_id(&meta.value()?.parse()?)?),
                "bound" => parsed.bound = Some(meta.value()?.parse()?),
                "name" => parsed.name = Some(identifier(&meta.value()?.parse()?)?),
                _ => return Err(unknown(meta, name, OF_VARIANTS)),
            }
            Ok(())
        })?;
        Ok(parsed)
    }
}

/// Computes the member id for `@hashid`: 28 bits of the MD5 of the name (XTypes 1.3 §7.3.1.2.1.1).
pub(crate) fn hash_id(name: &str) -> u32 {
    let digest: [u8; 16] = Md5::digest(name.as_bytes()).into();
    let [a, b, c, d, ..] = digest;
    u32::from_le_bytes([a, b, c, d]) & 0x0fff_ffff
}

fn for_each(attributes: &[Attribute], mut visit: impl FnMut(&ParseNestedMeta<'_>, &str) -> Result<()>) -> Result<()> {
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("dds")) {
        attribute.parse_nested_meta(|meta| match meta.path.get_ident().map(Ident::to_string) {
            Some(name) => visit(&meta, &name),
            None => Err(meta.error("unknown dds attribute")),
        })?;
    }
    Ok(())
}

fn unknown(meta: &ParseNestedMeta<'_>, name: &str, known: &str) -> Error {
    meta.error(format!("unknown dds attribute `{name}` here; expected {known}"))
}

fn extensibility(value: &LitStr) -> Result<Extensibility> {
    match value.value().as_str() {
        "final" => Ok(Extensibility::Final),
        "appendable" => Ok(Extensibility::Appendable),
        "mutable" => Ok(Extensibility::Mutable),
        _ => Err(Error::new(value.span(), "extensibility is \"final\", \"appendable\" or \"mutable\"")),
    }
}

fn autoid(value: &LitStr) -> Result<bool> {
    match value.value().as_str() {
        "sequential" => Ok(false),
        "hash" => Ok(true),
        _ => Err(Error::new(value.span(), "autoid is \"sequential\" or \"hash\"")),
    }
}

fn member_id(value: &LitInt) -> Result<u32> {
    match value.base10_parse::<u32>() {
        Ok(id) if id <= 0x0fff_ffff => Ok(id),
        _ => Err(Error::new(value.span(), "a member id has at most 28 bits")),
    }
}

fn labels(meta: &ParseNestedMeta<'_>) -> Result<Vec<Expr>> {
    let value: Expr = meta.value()?.parse()?;
    let labels = match value {
        Expr::Array(ExprArray { elems, .. }) => elems.into_iter().collect(),
        label => vec![label],
    };
    if labels.is_empty() {
        return Err(meta.error("a case has at least one label"));
    }
    match labels.iter().find(|label| !matches!(label, Expr::Lit(_) | Expr::Unary(_) | Expr::Path(_) | Expr::Call(_))) {
        Some(label) => {
            Err(Error::new(label.span(), "a label is a literal, an enumerator or a value such as `Char8(65)`"))
        }
        None => Ok(labels),
    }
}
