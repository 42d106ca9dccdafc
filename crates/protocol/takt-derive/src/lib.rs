//! `#[derive(DdsType)]`: maps a Rust type to an IDL type (XTypes 1.3 §7.2.2, §7.3.1).
//!
//! A struct becomes a `struct`, an enum without data an `enum`, and an enum with data (or with a
//! `discriminator`) a `union`. The generated code describes the type to `takt_xtypes`, which
//! performs the encoding.
//!
//! Attributes of the type:
//!
//! | attribute | meaning |
//! |---|---|
//! | `name = "module::Name"` | IDL name; default: the Rust name |
//! | `rename_all = "camelCase"` | naming convention for members and enumerators without a `name`: `"lowercase"`, `"UPPERCASE"`, `"PascalCase"`, `"camelCase"`, `"snake_case"`, `"SCREAMING_SNAKE_CASE"` |
//! | `extensibility = "final"`, `"appendable"`, `"mutable"` | extensibility kind; default: appendable, as in XTypes |
//! | `nested` | not a topic type: no `TypeSupport`, so `Default` is not required |
//! | `default` | implements `Default` by the default value of the type |
//! | `autoid = "sequential"`, `"hash"` | assignment of member ids that are not given explicitly |
//! | `bit_bound = 8` | enum only: 1 to 32, which makes it 1, 2 or 4 bytes long |
//! | `discriminator = "i32"` | union only: type of the discriminator, which may be an enum |
//! | `key` | union only: the discriminator is the key |
//! | `crate = "path"` | path of `takt_xtypes`; default: `::takt::generated` |
//!
//! Attributes of a field:
//!
//! | attribute | meaning |
//! |---|---|
//! | `key` | part of the instance key |
//! | `name = "frameId"` | IDL name; default: the Rust name |
//! | `id = 7` | member id; default: that of the previous member plus one |
//! | `hashid`, `hashid = "name"` | member id computed as the hash of the name |
//! | `bound = 128` | maximum length of a string, sequence or map |
//! | `must_understand` | readers that do not know the member drop the sample |
//! | `optional` | accepted on an `Option`, which already implies it |
//! | `default = expression` | value of the member if the writer's type lacks it |
//! | `base` | first field only: the struct from which this one inherits |
//!
//! Attributes of a variant: `name = "IDLE"` and `default` (the default enumerator, or the default
//! case of a union). Variants of a union also accept `case = 1`, `case = [2, 3]`, `id = 7` and
//! `bound = 128`. A case with several labels is written with the first one, also if it is the
//! default case. A default case without a label is written with the smallest number that no other
//! case has.

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
