//! Type descriptions for `takt_xtypes::describe`, from which type objects are built
//! (XTypes 1.3 §7.3.4).

use proc_macro2::TokenStream;
use quote::{ToTokens, quote, quote_spanned};
use syn::{Expr, Ident, Type};

use crate::attributes::{Container, IdSource};
use crate::structure::{Member, Parts};
use crate::union::Case;

/// Generates `CdrValue::describe` of a struct.
pub(crate) fn structure(ident: &Ident, container: &Container, parts: &Parts) -> TokenStream {
    let Container { nested, autoid_hash, .. } = container;
    let name = container.type_name(ident);
    let extensibility = container.extensibility.tokens();
    let base = match &parts.base {
        Some((_, ty)) => quote!(::core::option::Option::Some(<#ty as __xtypes::CdrValue>::describe)),
        None => quote!(::core::option::Option::None),
    };
    let members = parts.members.iter().enumerate().map(|(index, member)| {
        let Member { name, span, ty, optional, attributes, .. } = member;
        let describe = describe_type(ty, attributes.bound.as_ref());
        let hash_id = match &attributes.id {
            IdSource::Hash(of) => {
                let of = of.as_deref().unwrap_or_default();
                quote!(::core::option::Option::Some(#of))
            }
            IdSource::Auto | IdSource::Given(_) => quote!(::core::option::Option::None),
        };
        quote_spanned! {*span=>
            __xtypes::describe::MemberDescription {
                name: #name,
                member: MEMBERS[#index],
                hash_id: #hash_id,
                optional: #optional,
                external: <#ty as __xtypes::CdrValue>::IS_EXTERNAL,
                describe: #describe,
            }
        }
    });
    let description = quote! {
        __xtypes::describe::StructDescription {
            name: #name,
            extensibility: #extensibility,
            nested: #nested,
            autoid_hash: #autoid_hash,
            base: #base,
            members: &[#(#members),*],
        }
    };
    describe(&quote!(StructDescription), &description, &quote!(DESCRIPTION.build(types)))
}

/// Generates `CdrValue::describe` of a union.
pub(crate) fn union(ident: &Ident, container: &Container, discriminator: &TokenStream, cases: &[Case]) -> TokenStream {
    let Container { nested, key, .. } = container;
    let name = container.type_name(ident);
    let extensibility = container.extensibility.tokens();
    let cases = cases.iter().filter_map(|case| {
        let ty = case.ty.as_ref()?;
        let (id, default) = (case.id, case.attributes.default);
        let name = &case.name;
        let labels = case.attributes.labels.iter().map(|value| label(discriminator, value));
        let describe = describe_type(ty, case.attributes.bound.as_ref());
        Some(quote! {
            __xtypes::describe::CaseDescription {
                name: #name,
                id: #id,
                labels: &[#(#labels),*],
                default: #default,
                external: <#ty as __xtypes::CdrValue>::IS_EXTERNAL,
                describe: #describe,
            }
        })
    });
    let description = quote! {
        __xtypes::describe::UnionDescription {
            name: #name,
            extensibility: #extensibility,
            nested: #nested,
            key: #key,
            discriminator: <#discriminator as __xtypes::CdrValue>::describe,
            cases: &[#(#cases),*],
        }
    };
    describe(&quote!(UnionDescription), &description, &quote!(DESCRIPTION.build(types)))
}

/// Generates `CdrValue::describe` of an enumeration whose variants have these IDL names.
pub(crate) fn enumeration<'a>(
    ident: &Ident,
    container: &Container,
    bits: u32,
    variants: impl Iterator<Item = (&'a Ident, &'a String)>,
    default: Option<&Ident>,
) -> TokenStream {
    let name = container.type_name(ident);
    let extensibility = container.extensibility.tokens();
    let bits = u16::try_from(bits).unwrap_or(32);
    let literals = variants.map(|(variant, name)| {
        let is_default = default == Some(variant);
        quote!((#name, #ident::#variant as i32, #is_default))
    });
    let description = quote! {
        __xtypes::describe::EnumDescription {
            name: #name,
            extensibility: #extensibility,
            bit_bound: #bits,
            literals: &[#(#literals),*],
        }
    };
    describe(&quote!(EnumDescription), &description, &quote!(DESCRIPTION.build()))
}

/// Generates the description as a constant, so that repeated calls yield the same type.
fn describe(kind: &TokenStream, description: &TokenStream, build: &TokenStream) -> TokenStream {
    quote! {
        fn describe(types: &mut __xtypes::describe::TypeCollector<'_>) -> __xtypes::describe::TypeIdentifiers {
            const DESCRIPTION: __xtypes::describe::#kind = #description;
            types.named::<Self>(DESCRIPTION.name, |types| {
                let _ = &types;
                #build
            })
        }
    }
}

fn describe_type(ty: &Type, bound: Option<&Expr>) -> TokenStream {
    match bound {
        Some(bound) => quote!(|types| <#ty as __xtypes::HasLength>::describe_bounded(types, #bound)),
        None => quote!(<#ty as __xtypes::CdrValue>::describe),
    }
}

/// Generates a label as a 32-bit number, as in type objects.
fn label(discriminator: &TokenStream, value: &Expr) -> TokenStream {
    let name = discriminator.to_token_stream().to_string();
    let is_newtype = ["Char8", "Char16", "Uint8"].iter().any(|newtype| name.ends_with(newtype));
    let number = if is_newtype { quote!(label.0 as i32) } else { quote!(label as i32) };
    quote! {{
        let label: #discriminator = #value;
        #number
    }}
}
