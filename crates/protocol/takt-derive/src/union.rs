//! Unions: enums with data.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{DataEnum, Error, Expr, ExprLit, ExprUnary, Fields, Ident, Lit, LitInt, Result, Type, UnOp};

use crate::attributes::{Container, Variant};
use crate::description;
use crate::names::{check_distinct, member_name};

/// Variant with its labels.
pub(crate) struct Case {
    pub ident: Ident,
    /// IDL name of the member.
    pub name: String,
    /// Type of the member; a case may have none.
    pub ty: Option<Type>,
    pub id: u32,
    /// Discriminator value with which the case is written.
    written: Expr,
    pub attributes: Variant,
}

pub(crate) fn expand(ident: &Ident, container: &Container, data: &DataEnum) -> Result<TokenStream> {
    if container.bit_bound.is_some() || container.autoid_hash {
        return Err(Error::new(ident.span(), "`bit_bound` and `autoid` are not attributes of a union"));
    }
    let cases = take_apart(ident, container, data)?;
    let discriminator = match &container.discriminator {
        Some(ty) => ty.to_token_stream(),
        None => quote!(i32),
    };
    let value = cdr_value(ident, container, &discriminator, &cases);
    let union = union_type(ident, container, &discriminator, &cases);
    let support = (!container.nested).then(|| type_support(ident, container));
    Ok(quote!(#value #union #support))
}

fn take_apart(ident: &Ident, container: &Container, data: &DataEnum) -> Result<Vec<Case>> {
    let parsed = data.variants.iter().map(|v| Ok((v, Variant::parse(&v.attrs)?))).collect::<Result<Vec<_>>>()?;
    let mut labels: Vec<String> = Vec::new();
    let mut has_default = false;
    for (variant, attributes) in &parsed {
        for label in &attributes.labels {
            let text = label.to_token_stream().to_string();
            if labels.contains(&text) {
                return Err(Error::new_spanned(label, "another case has this label"));
            }
            labels.push(text);
        }
        if attributes.default && std::mem::replace(&mut has_default, true) {
            return Err(Error::new_spanned(variant, "only one case is the default"));
        }
    }
    let numbers: Vec<i128> = parsed.iter().flat_map(|(_, a)| &a.labels).filter_map(number).collect();
    let mut cases: Vec<Case> = Vec::new();
    for (variant, attributes) in parsed {
        let ty = match &variant.fields {
            Fields::Unit => None,
            Fields::Unnamed(fields) if fields.unnamed.len() == 1 => Some(fields.unnamed[0].ty.clone()),
            _ => return Err(Error::new_spanned(variant, "a case has one member, `Name(Type)`, or none, `Name`")),
        };
        if attributes.bound.is_some() && ty.is_none() {
            return Err(Error::new_spanned(variant, "a case without a member has no bound"));
        }
        let written = match attributes.labels.first() {
            Some(label) => label.clone(),
            None if attributes.default => default_label(variant, container, labels.len(), &numbers)?,
            None => return Err(Error::new_spanned(variant, "a case needs `#[dds(case = ...)]` or `#[dds(default)]`")),
        };
        // Member ids start after that of the discriminator, which is 0.
        let id = attributes.id.unwrap_or_else(|| cases.last().map_or(1, |case| case.id + 1));
        if id == 0 || cases.iter().any(|case| case.id == id) {
            return Err(Error::new_spanned(variant, format!("member id {id} is taken")));
        }
        let name = member_name(&variant.ident, attributes.name.as_ref(), container.rename_all);
        cases.push(Case { ident: variant.ident.clone(), name, ty, id, written, attributes });
    }
    check_distinct(cases.iter().map(|case| (&case.ident, &case.name)))?;
    if cases.is_empty() {
        return Err(Error::new(ident.span(), "a union has at least one case"));
    }
    Ok(cases)
}

/// Returns the label of a default case without one: the smallest number that no other case has.
fn default_label(variant: &syn::Variant, container: &Container, labels: usize, numbers: &[i128]) -> Result<Expr> {
    let integral = match &container.discriminator {
        None => true,
        Some(ty) => {
            let name = ty.to_token_stream().to_string();
            ["i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"].contains(&name.as_str())
        }
    };
    if !integral || labels != numbers.len() {
        let text = "the default case needs the discriminator to write: `#[dds(default, case = ...)]`";
        return Err(Error::new_spanned(variant, text));
    }
    let free = (0..).find(|number| !numbers.contains(number)).unwrap_or_default();
    let literal = LitInt::new(&free.to_string(), variant.ident.span());
    Ok(syn::parse_quote!(#literal))
}

fn number(label: &Expr) -> Option<i128> {
    match label {
        Expr::Lit(ExprLit { lit: Lit::Int(value), .. }) => value.base10_parse().ok(),
        Expr::Unary(ExprUnary { op: UnOp::Neg(_), expr, .. }) => number(expr).map(|number| -number),
        _ => None,
    }
}

fn cdr_value(ident: &Ident, container: &Container, discriminator: &TokenStream, cases: &[Case]) -> TokenStream {
    let extensibility = container.extensibility.tokens();
    let initial = construct(&cases[0]);
    let describe = description::union(ident, container, discriminator, cases);
    // The extent of all cases together is sufficient for any of them.
    let types = cases.iter().filter_map(|case| case.ty.as_ref());
    quote! {
        #[automatically_derived]
        impl __xtypes::CdrValue for #ident {
            const MIN_ENCODED_LEN: usize = __xtypes::structure::min_encoded_len(
                #extensibility,
                <#discriminator as __xtypes::CdrValue>::MIN_ENCODED_LEN,
            );

            const INITIAL_HEAP_LEN: usize = 0 #(+ <#types as __xtypes::CdrValue>::INITIAL_HEAP_LEN)*;

            #[inline]
            fn encode<S: __xtypes::Sink>(
                &self,
                e: &mut __xtypes::Encoder<S>,
            ) -> ::core::result::Result<(), __xtypes::EncodeError> {
                __xtypes::union::encode(self, e)
            }

            #[inline]
            fn decode(
                &mut self,
                d: &mut __xtypes::Decoder<'_>,
            ) -> ::core::result::Result<(), __xtypes::DecodeError> {
                __xtypes::union::decode(self, d)
            }

            fn initial() -> Self {
                #initial
            }

            fn extend(extent: __xtypes::Extent) -> __xtypes::Extent {
                __xtypes::union::extend::<Self>(extent)
            }

            #describe
        }
    }
}

/// Generates a case with the default value of its member.
fn construct(case: &Case) -> TokenStream {
    let ident = &case.ident;
    match &case.ty {
        Some(_) => quote!(Self::#ident(__xtypes::CdrValue::initial())),
        None => quote!(Self::#ident),
    }
}

fn union_type(ident: &Ident, container: &Container, discriminator: &TokenStream, cases: &[Case]) -> TokenStream {
    let extensibility = container.extensibility.tokens();
    let key = container.key;
    let names: Vec<_> = cases.iter().map(|case| &case.ident).collect();
    let written = cases.iter().map(|case| &case.written);
    let members = cases.iter().map(case_member);
    let encode = cases.iter().map(encode_case);
    let decode = cases.iter().map(decode_case);
    let reset = cases.iter().map(reset_case);
    let select = select(cases);
    let extents = cases.iter().filter_map(visit_case);
    quote! {
        #[automatically_derived]
        impl __xtypes::union::UnionType for #ident {
            type Discriminator = #discriminator;
            const EXTENSIBILITY: __xtypes::Extensibility = #extensibility;
            const DISCRIMINATOR_IS_KEY: bool = #key;

            fn discriminator(&self) -> #discriminator {
                match self {
                    #(Self::#names { .. } => #written,)*
                }
            }

            fn case_member(&self) -> ::core::option::Option<(u32, u8)> {
                match self {
                    #(#members,)*
                }
            }

            fn encode_case<S: __xtypes::Sink>(
                &self,
                e: &mut __xtypes::Encoder<S>,
            ) -> ::core::result::Result<(), __xtypes::EncodeError> {
                let _ = &e;
                match self {
                    #(#encode)*
                }
                ::core::result::Result::Ok(())
            }

            fn select(&mut self, discriminator: &#discriminator) -> bool {
                #select
            }

            fn decode_case(
                &mut self,
                d: &mut __xtypes::Decoder<'_>,
            ) -> ::core::result::Result<(), __xtypes::DecodeError> {
                let _ = &d;
                match self {
                    #(#decode)*
                }
                ::core::result::Result::Ok(())
            }

            fn reset_case(&mut self) {
                match self {
                    #(#reset,)*
                }
            }

            fn for_each_case(visit: &mut dyn FnMut(u32, u8, fn(__xtypes::Extent) -> __xtypes::Extent)) {
                let _ = &visit;
                #(#extents)*
            }
        }
    }
}

fn case_member(case: &Case) -> TokenStream {
    let (ident, id) = (&case.ident, case.id);
    match &case.ty {
        Some(ty) => quote! {
            Self::#ident(_) => ::core::option::Option::Some((#id, <#ty as __xtypes::CdrValue>::LENGTH_CODE))
        },
        None => quote!(Self::#ident => ::core::option::Option::None),
    }
}

fn reset_case(case: &Case) -> TokenStream {
    let ident = &case.ident;
    match &case.ty {
        Some(_) => quote!(Self::#ident(value) => __xtypes::CdrValue::reset(value)),
        None => quote!(Self::#ident => {}),
    }
}

fn encode_case(case: &Case) -> TokenStream {
    let ident = &case.ident;
    if case.ty.is_none() {
        return quote!(Self::#ident => {});
    }
    let check = case.attributes.bound.iter().map(|b| quote!(__xtypes::check_encoded_bound(value, #b)?;));
    quote! {
        Self::#ident(value) => {
            #(#check)*
            __xtypes::CdrValue::encode(value, e)?;
        }
    }
}

fn decode_case(case: &Case) -> TokenStream {
    let ident = &case.ident;
    if case.ty.is_none() {
        return quote!(Self::#ident => {});
    }
    let check = case.attributes.bound.iter().map(|b| quote!(__xtypes::check_decoded_bound(value, #b, d)?;));
    quote! {
        Self::#ident(value) => {
            __xtypes::CdrValue::decode(value, d)?;
            #(#check)*
        }
    }
}

fn select(cases: &[Case]) -> TokenStream {
    let change = |case: &Case| {
        let (ident, value) = (&case.ident, construct(case));
        quote! {
            if !::core::matches!(self, Self::#ident { .. }) {
                *self = #value;
            }
        }
    };
    let arms = cases.iter().filter(|case| !case.attributes.labels.is_empty()).map(|case| {
        let (labels, change) = (&case.attributes.labels, change(case));
        quote!(#(#labels)|* => { #change })
    });
    let rest = match cases.iter().find(|case| case.attributes.default) {
        Some(case) => change(case),
        None => quote!(return false;),
    };
    quote! {
        #[allow(unreachable_patterns)]
        match *discriminator {
            #(#arms)*
            _ => { #rest }
        }
        true
    }
}

fn visit_case(case: &Case) -> Option<TokenStream> {
    let (ty, id) = (case.ty.as_ref()?, case.id);
    let extend = match &case.attributes.bound {
        Some(bound) => quote!(|extent| <#ty as __xtypes::HasLength>::extend_bounded(extent, #bound)),
        None => quote!(<#ty as __xtypes::CdrValue>::extend),
    };
    Some(quote!(visit(#id, <#ty as __xtypes::CdrValue>::LENGTH_CODE, #extend);))
}

fn type_support(ident: &Ident, container: &Container) -> TokenStream {
    let name = container.type_name(ident);
    quote! {
        #[automatically_derived]
        impl __xtypes::TypeSupport for #ident {
            const TYPE_NAME: &'static str = #name;
            const EXTENSIBILITY: __xtypes::Extensibility = <#ident as __xtypes::union::UnionType>::EXTENSIBILITY;
            const HAS_KEY: bool = <#ident as __xtypes::union::UnionType>::DISCRIMINATOR_IS_KEY;
        }
    }
}
