//! `#[derive(DdsType)]`: a Rust type as an IDL type (XTypes 1.3 §7.2.2, §7.3.1).
//!
//! A struct becomes a `struct`, an enum without data an `enum`, an enum with data (or with a `discriminator`) a
//! `union`. The generated code only describes the type to `takt_xtypes`, which does the encoding.
//!
//! On the type:
//!
//! | attribute | meaning |
//! |---|---|
//! | `name = "module::Name"` | the IDL name; the Rust name by default |
//! | `rename_all = "camelCase"` | the IDL names of members and enumerators without a name of their own: `"lowercase"`, `"UPPERCASE"`, `"PascalCase"`, `"camelCase"`, `"snake_case"`, `"SCREAMING_SNAKE_CASE"` |
//! | `extensibility = "final"`, `"appendable"`, `"mutable"` | appendable by default, as XTypes has it |
//! | `nested` | not a type of topics: no `TypeSupport`, so `Default` is not needed |
//! | `default` | implement `Default` by the type's default value |
//! | `autoid = "sequential"`, `"hash"` | where member ids come from that are not given |
//! | `bit_bound = 8` | of an enum: 1 to 32, which makes it 1, 2 or 4 bytes long |
//! | `discriminator = "i32"` | of a union: its type, which may be an enum |
//! | `key` | of a union: the discriminator is the key |
//! | `crate = "path"` | where `takt_xtypes` is found; `::takt::xtypes` by default |
//!
//! On a field:
//!
//! | attribute | meaning |
//! |---|---|
//! | `key` | part of the instance's key |
//! | `name = "frameId"` | the IDL name; the Rust name by default |
//! | `id = 7` | the member id; the previous one's plus one by default |
//! | `hashid`, `hashid = "name"` | the member id is the hash of the name |
//! | `bound = 128` | the greatest length of a string, sequence or map |
//! | `must_understand` | readers that do not know it drop the sample |
//! | `optional` | says what `Option` already says |
//! | `default = expression` | the value where the writer's type has no such member |
//! | `base` | of the first field: the struct this one inherits from |
//!
//! On a variant: `name = "IDLE"`, `default` (the default enumerator, or the default case of a union), and for unions `case = 1`,
//! `case = [2, 3]`, `id = 7` and `bound = 128`. A case with several labels, and a default case, is written with the
//! first label; a default case without a label with the smallest number that no other case has.

mod attributes;
mod description;
mod enumeration;
mod names;
mod structure;
mod union;

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, Error, Fields, Result, parse_macro_input};

/// Derives the traits of `takt_xtypes` for a struct, an enum or a union (an enum with data).
#[proc_macro_derive(DdsType, attributes(dds))]
pub fn derive_dds_type(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand(&input).unwrap_or_else(|error| error.to_compile_error()).into()
}

fn expand(input: &DeriveInput) -> Result<TokenStream> {
    if let Some(parameter) = input.generics.params.first() {
        return Err(Error::new_spanned(parameter, "generic types have no IDL equivalent"));
    }
    let attributes = attributes::Container::parse(&input.attrs)?;
    let body = match &input.data {
        Data::Struct(data) => structure::expand(&input.ident, &attributes, data)?,
        Data::Enum(data) => {
            let has_data = data.variants.iter().any(|variant| !matches!(variant.fields, Fields::Unit));
            if has_data || attributes.discriminator.is_some() {
                union::expand(&input.ident, &attributes, data)?
            } else {
                enumeration::expand(&input.ident, &attributes, data)?
            }
        }
        Data::Union(data) => {
            return Err(Error::new(data.union_token.span, "an IDL union is a Rust enum with data"));
        }
    };
    let krate = &attributes.krate;
    let ident = &input.ident;
    let default = attributes.default.then(|| {
        quote! {
            #[automatically_derived]
            impl ::core::default::Default for #ident {
                fn default() -> Self {
                    <Self as __xtypes::CdrValue>::initial()
                }
            }
        }
    });
    Ok(quote! {
        const _: () = {
            use #krate as __xtypes;
            #body
            #default
        };
    })
}
