//! Enumerations: enums without data.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::{DataEnum, Error, Ident, LitInt, Result};

use crate::attributes::{Container, Variant};
use crate::description;
use crate::names::{check_distinct, member_name};

pub(crate) fn expand(ident: &Ident, container: &Container, data: &DataEnum) -> Result<TokenStream> {
    if container.key {
        return Err(Error::new(ident.span(), "`key` is not an attribute of an enumeration"));
    }
    if data.variants.is_empty() {
        return Err(Error::new(ident.span(), "an enumeration has at least one enumerator"));
    }
    let holder = holder(container.bit_bound.as_ref())?;
    let bits = match &container.bit_bound {
        Some(bound) => bound.base10_parse::<u32>()?,
        None => 32,
    };
    let Enumerators { names, idl_names, default } = Enumerators::parse(container, data)?;
    let initial = default.unwrap_or(names[0]);
    let values: Vec<_> = (0..names.len()).map(|index| format_ident!("VALUE_{index}")).collect();
    let describe = description::enumeration(ident, container, bits, names.iter().copied().zip(&idl_names), default);
    let constants = names.iter().zip(&values).map(|(name, value)| value_constant(value, ident, name, (&holder, bits)));
    Ok(quote! {
        #(#constants)*

        #[automatically_derived]
        impl __xtypes::CdrValue for #ident {
            const MIN_ENCODED_LEN: usize = <#holder as __xtypes::CdrValue>::MIN_ENCODED_LEN;
            const LENGTH_CODE: u8 = <#holder as __xtypes::CdrValue>::LENGTH_CODE;

            #[inline]
            fn encode<S: __xtypes::Sink>(
                &self,
                e: &mut __xtypes::Encoder<S>,
            ) -> ::core::result::Result<(), __xtypes::EncodeError> {
                let value: #holder = match self {
                    #(Self::#names => #values,)*
                };
                __xtypes::CdrValue::encode(&value, e)
            }

            #[inline]
            fn decode(
                &mut self,
                d: &mut __xtypes::Decoder<'_>,
            ) -> ::core::result::Result<(), __xtypes::DecodeError> {
                let mut value: #holder = 0;
                __xtypes::CdrValue::decode(&mut value, d)?;
                *self = match value {
                    #(#values => Self::#names,)*
                    #[allow(unreachable_patterns)]
                    other => {
                        let value = i64::from(other);
                        return ::core::result::Result::Err(d.error(__xtypes::DecodeErrorKind::EnumValue { value }));
                    }
                };
                ::core::result::Result::Ok(())
            }

            #[inline]
            fn initial() -> Self {
                Self::#initial
            }

            #[inline]
            fn extend(extent: __xtypes::Extent) -> __xtypes::Extent {
                <#holder as __xtypes::CdrValue>::extend(extent)
            }

            #describe
        }
    })
}

/// Names of the enumerators.
struct Enumerators<'a> {
    names: Vec<&'a Ident>,
    idl_names: Vec<String>,
    /// Enumerator with the attribute `default`.
    default: Option<&'a Ident>,
}

impl<'a> Enumerators<'a> {
    fn parse(container: &Container, data: &'a DataEnum) -> Result<Self> {
        let names: Vec<_> = data.variants.iter().map(|variant| &variant.ident).collect();
        let mut idl_names = Vec::with_capacity(names.len());
        let mut default = None;
        for variant in &data.variants {
            let attributes = Variant::parse(&variant.attrs)?;
            if !attributes.labels.is_empty() || attributes.id.is_some() || attributes.bound.is_some() {
                return Err(Error::new_spanned(variant, "an enumerator has no attributes but `name` and `default`"));
            }
            if attributes.default && default.replace(&variant.ident).is_some() {
                return Err(Error::new_spanned(variant, "only one enumerator is the default"));
            }
            idl_names.push(member_name(&variant.ident, attributes.name.as_ref(), container.rename_all));
        }
        check_distinct(names.iter().copied().zip(&idl_names))?;
        Ok(Self { names, idl_names, default })
    }
}

/// Generates the constant with the value of an enumerator, in the integer type that holds it.
fn value_constant(value: &Ident, ident: &Ident, name: &Ident, (holder, bits): (&TokenStream, u32)) -> TokenStream {
    quote_spanned! {name.span()=>
        const #value: #holder = {
            let value = #ident::#name as i64;
            let limit = 1_i64 << (#bits - 1);
            assert!(-limit <= value && value < limit, "the value of the enumerator exceeds bit_bound");
            value as #holder
        };
    }
}

/// Returns the integer type that holds an enumeration on the wire (XTypes 1.3 §7.3.1.2.1.5).
fn holder(bit_bound: Option<&LitInt>) -> Result<TokenStream> {
    let Some(bound) = bit_bound else {
        return Ok(quote!(i32));
    };
    match bound.base10_parse::<u32>()? {
        1..=8 => Ok(quote!(i8)),
        9..=16 => Ok(quote!(i16)),
        17..=32 => Ok(quote!(i32)),
        _ => Err(Error::new(bound.span(), "the bit_bound of an enumeration is 1 to 32")),
    }
}
