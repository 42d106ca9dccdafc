//! Structs, with optional members and single inheritance.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{DataStruct, Error, Fields, GenericArgument, Ident, PathArguments, Result, Type};

use crate::attributes::{Container, Extensibility, Field, IdSource, hash_id};
use crate::description;
use crate::names::{check_distinct, member_name};

/// Id of a member: known, or relative to the last id of the base.
#[derive(Clone, Copy)]
enum Id {
    Known(u32),
    AfterBase(u32),
}

/// Field that is a member.
pub(crate) struct Member {
    pub ident: Ident,
    /// IDL name of the member.
    pub name: String,
    /// Location for errors about the type.
    pub span: Span,
    /// Type of the member; of an `Option`, the contained type.
    pub ty: Type,
    pub optional: bool,
    id: Id,
    pub attributes: Field,
}

/// Parts of a struct.
pub(crate) struct Parts {
    pub base: Option<(Ident, Type)>,
    pub members: Vec<Member>,
}

pub(crate) fn expand(ident: &Ident, container: &Container, data: &DataStruct) -> Result<TokenStream> {
    if container.discriminator.is_some() || container.bit_bound.is_some() || container.key {
        return Err(Error::new(ident.span(), "`discriminator`, `bit_bound` and `key` are not attributes of a struct"));
    }
    let parts = take_apart(container, &data.fields)?;
    let value = cdr_value(ident, container, &parts);
    let structure = struct_type(ident, container.extensibility, &parts);
    let support = (!container.nested).then(|| type_support(ident, container));
    Ok(quote!(#value #structure #support))
}

fn take_apart(container: &Container, fields: &Fields) -> Result<Parts> {
    let mut base = None;
    let mut members: Vec<Member> = Vec::new();
    for (index, field) in fields.iter().enumerate() {
        let Some(ident) = field.ident.clone() else {
            return Err(Error::new_spanned(field, "an IDL struct needs named members"));
        };
        let attributes = Field::parse(&field.attrs)?;
        if attributes.base {
            if index != 0 {
                return Err(Error::new_spanned(field, "the base is the first field"));
            }
            base = Some((ident, field.ty.clone()));
            continue;
        }
        let inner = option_inner(&field.ty);
        check(field, &attributes, inner.is_some())?;
        let name = member_name(&ident, attributes.name.as_ref(), container.rename_all);
        let id = member_id(container, &attributes, &name, members.last(), base.is_some());
        if let Id::Known(id) = id
            && let Some(other) = members.iter().find(|member| matches!(member.id, Id::Known(other) if other == id))
        {
            let text = format!("member id {id} is already used by `{}`", other.ident);
            return Err(Error::new_spanned(field, text));
        }
        members.push(Member {
            span: Span::call_site().located_at(field.ty.span()),
            ty: inner.unwrap_or(&field.ty).clone(),
            optional: inner.is_some(),
            ident,
            name,
            id,
            attributes,
        });
    }
    check_distinct(members.iter().map(|member| (&member.ident, &member.name)))?;
    Ok(Parts { base, members })
}

fn check(field: &syn::Field, attributes: &Field, is_option: bool) -> Result<()> {
    let fails = |text| Err(Error::new_spanned(field, text));
    if attributes.optional && !is_option {
        return fails("an optional member is an `Option`");
    }
    if is_option && attributes.key {
        return fails("a key member cannot be optional");
    }
    if is_option && attributes.default.is_some() {
        return fails("an optional member has no default: it is absent");
    }
    Ok(())
}

fn member_id(container: &Container, attributes: &Field, name: &str, previous: Option<&Member>, has_base: bool) -> Id {
    match &attributes.id {
        IdSource::Given(id) => Id::Known(*id),
        IdSource::Hash(of) => Id::Known(hash_id(of.as_deref().unwrap_or(name))),
        IdSource::Auto if container.autoid_hash => Id::Known(hash_id(name)),
        IdSource::Auto => match previous.map(|member| member.id) {
            Some(Id::Known(id)) => Id::Known(id + 1),
            Some(Id::AfterBase(offset)) => Id::AfterBase(offset + 1),
            None if has_base => Id::AfterBase(0),
            None => Id::Known(0),
        },
    }
}

/// Returns the `T` of `Option<T>`, with or without a module path.
fn option_inner(ty: &Type) -> Option<&Type> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last().filter(|segment| segment.ident == "Option")?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    match arguments.args.first() {
        Some(GenericArgument::Type(inner)) => Some(inner),
        _ => None,
    }
}

impl Parts {
    fn base_type(&self) -> Option<TokenStream> {
        self.base.as_ref().map(|(_, ty)| quote!(<#ty as __xtypes::structure::StructType>))
    }

    fn id(&self, id: Id) -> TokenStream {
        match (id, self.base_type()) {
            (Id::AfterBase(offset), Some(base)) => quote!(#base::IDS.next() + #offset),
            (Id::Known(id) | Id::AfterBase(id), _) => id.to_token_stream(),
        }
    }

    fn has_key(&self) -> TokenStream {
        let own = self.members.iter().any(|member| member.attributes.key);
        match self.base_type() {
            Some(base) => quote!(#base::HAS_KEY || #own),
            None => own.to_token_stream(),
        }
    }

    fn key_count(&self) -> TokenStream {
        let own = self.members.iter().filter(|member| member.attributes.key).count();
        match self.base_type() {
            Some(base) => quote!(#base::KEY_COUNT + #own),
            None => own.to_token_stream(),
        }
    }
}

fn cdr_value(ident: &Ident, container: &Container, parts: &Parts) -> TokenStream {
    let extensibility = container.extensibility.tokens();
    let describe = description::structure(ident, container, parts);
    let base_len = parts.base.iter().map(|(_, ty)| quote!(+ <#ty as __xtypes::CdrValue>::MIN_ENCODED_LEN));
    let base_heap = parts.base.iter().map(|(_, ty)| quote!(+ <#ty as __xtypes::CdrValue>::INITIAL_HEAP_LEN));
    let member_heap = parts.members.iter().filter(|member| !member.optional).map(|member| {
        let ty = &member.ty;
        quote_spanned!(member.span=> + <#ty as __xtypes::CdrValue>::INITIAL_HEAP_LEN)
    });
    let member_len = parts.members.iter().map(|member| {
        let ty = &member.ty;
        if member.optional {
            quote!(+ 1)
        } else {
            quote_spanned!(member.span=> + <#ty as __xtypes::CdrValue>::MIN_ENCODED_LEN)
        }
    });
    let base = parts.base.iter().map(|(field, _)| (field, quote!(__xtypes::CdrValue::initial())));
    let members = parts.members.iter().map(|member| (&member.ident, initial(member)));
    let (fields, values): (Vec<_>, Vec<_>) = base.chain(members).unzip();
    let base_reset = parts.base.iter().map(|(field, _)| quote!(__xtypes::CdrValue::reset(&mut self.#field);));
    let member_reset = parts.members.iter().map(|member| {
        let field = &member.ident;
        if member.optional || member.attributes.default.is_some() {
            let value = initial(member);
            quote!(self.#field = #value;)
        } else {
            quote_spanned!(member.span=> __xtypes::CdrValue::reset(&mut self.#field);)
        }
    });
    quote! {
        #[automatically_derived]
        impl __xtypes::CdrValue for #ident {
            const MIN_ENCODED_LEN: usize =
                __xtypes::structure::min_encoded_len(#extensibility, 0 #(#base_len)* #(#member_len)*);
            const INITIAL_HEAP_LEN: usize = 0 #(#base_heap)* #(#member_heap)*;

            #[inline]
            fn encode<S: __xtypes::Sink>(
                &self,
                e: &mut __xtypes::Encoder<S>,
            ) -> ::core::result::Result<(), __xtypes::EncodeError> {
                __xtypes::structure::encode(self, e)
            }

            #[inline]
            fn decode(
                &mut self,
                d: &mut __xtypes::Decoder<'_>,
            ) -> ::core::result::Result<(), __xtypes::DecodeError> {
                __xtypes::structure::decode(self, d)
            }

            fn initial() -> Self {
                Self { #(#fields: #values),* }
            }

            fn reset(&mut self) {
                #(#base_reset)*
                #(#member_reset)*
            }

            fn extend(extent: __xtypes::Extent) -> __xtypes::Extent {
                __xtypes::structure::extend::<Self>(extent)
            }

            #describe
        }
    }
}

/// Generates the default value of a member.
fn initial(member: &Member) -> TokenStream {
    match &member.attributes.default {
        Some(default) => default.to_token_stream(),
        None if member.optional => quote!(::core::option::Option::None),
        None => quote_spanned!(member.span=> __xtypes::CdrValue::initial()),
    }
}

fn struct_type(ident: &Ident, extensibility: Extensibility, parts: &Parts) -> TokenStream {
    let extensibility = extensibility.tokens();
    let has_key = parts.has_key();
    let key_count = parts.key_count();
    let start = match parts.base_type() {
        Some(base) => quote!(#base::IDS),
        None => quote!(__xtypes::structure::MemberIds::NONE),
    };
    let ids: Vec<_> = parts.members.iter().map(|member| parts.id(member.id)).collect();
    let table = member_table(&parts.members, &ids);
    let same_extensibility = parts.base_type().map(|base| extensibility_check(&base, &extensibility));
    let base_encode =
        parts.base.iter().map(|(f, _)| quote!(__xtypes::structure::StructType::encode_members(&self.#f, m)?;));
    let base_decode =
        parts.base.iter().map(|(f, _)| quote!(__xtypes::structure::StructType::decode_members(&mut self.#f, m)?;));
    let base_extend = parts.base_type().map(|base| quote!(#base::extend_members(m);));
    let encode = parts.members.iter().enumerate().map(|(index, member)| encode_member(index, member));
    let decode = parts.members.iter().enumerate().map(|(index, member)| decode_member(index, member));
    let extend = parts.members.iter().enumerate().map(|(index, member)| extend_member(index, member));
    quote! {
        #table
        const _: () = if let ::core::option::Option::Some(fault) =
            <#ident as __xtypes::structure::StructType>::IDS.fault()
        {
            ::core::panic!("{}", fault);
        };
        #same_extensibility

        #[automatically_derived]
        impl __xtypes::structure::StructType for #ident {
            const EXTENSIBILITY: __xtypes::Extensibility = #extensibility;
            const HAS_KEY: bool = #has_key;
            const KEY_COUNT: usize = #key_count;
            const IDS: __xtypes::structure::MemberIds = #start #(.with(#ids))*;

            #[inline]
            fn encode_members<S: __xtypes::Sink>(
                &self,
                m: &mut __xtypes::structure::MemberEncoder<'_, S>,
            ) -> ::core::result::Result<(), __xtypes::EncodeError> {
                let _ = &m;
                #(#base_encode)*
                #(#encode)*
                ::core::result::Result::Ok(())
            }

            #[inline]
            fn decode_members(
                &mut self,
                m: &mut __xtypes::structure::MemberDecoder<'_, '_>,
            ) -> ::core::result::Result<(), __xtypes::DecodeError> {
                let _ = &m;
                #(#base_decode)*
                #(#decode)*
                ::core::result::Result::Ok(())
            }

            fn extend_members(m: &mut __xtypes::structure::MemberExtent) {
                let _ = &m;
                #base_extend
                #(#extend)*
            }
        }
    }
}

/// Generates the check that a struct has the extensibility of its base.
fn extensibility_check(base: &TokenStream, extensibility: &TokenStream) -> TokenStream {
    quote! {
        const _: () = assert!(
            __xtypes::structure::same_extensibility(#base::EXTENSIBILITY, #extensibility),
            "a struct has the extensibility of its base"
        );
    }
}

/// Generates the constant with the id and the flags of each member.
fn member_table(members: &[Member], ids: &[TokenStream]) -> TokenStream {
    let infos = members.iter().zip(ids).map(|(member, id)| {
        let Field { key, must_understand, .. } = member.attributes;
        quote!(__xtypes::structure::Member { id: #id, key: #key, must_understand: #must_understand })
    });
    let count = members.len();
    quote! {
        #[allow(dead_code)]
        const MEMBERS: [__xtypes::structure::Member; #count] = [#(#infos),*];
    }
}

fn encode_member(index: usize, member: &Member) -> TokenStream {
    let Member { ident, span, .. } = member;
    match (member.optional, &member.attributes.bound) {
        (false, None) => quote_spanned!(*span=> m.member(MEMBERS[#index], &self.#ident)?;),
        (false, Some(bound)) => quote_spanned!(*span=> m.bounded(MEMBERS[#index], #bound, &self.#ident)?;),
        (true, None) => quote_spanned!(*span=> m.optional(MEMBERS[#index], &self.#ident)?;),
        (true, Some(bound)) => quote_spanned!(*span=> m.optional_bounded(MEMBERS[#index], #bound, &self.#ident)?;),
    }
}

fn decode_member(index: usize, member: &Member) -> TokenStream {
    let Member { ident, span, .. } = member;
    let reset = member.attributes.default.as_ref().map(|default| quote!(|value| *value = #default));
    let call = match (member.optional, &member.attributes.bound, reset) {
        (false, None, None) => quote_spanned!(*span=> member(MEMBERS[#index], &mut self.#ident)),
        (false, None, Some(reset)) => quote_spanned!(*span=> member_or(MEMBERS[#index], &mut self.#ident, #reset)),
        (false, Some(bound), None) => quote_spanned!(*span=> bounded(MEMBERS[#index], #bound, &mut self.#ident)),
        (false, Some(bound), Some(reset)) => {
            quote_spanned!(*span=> bounded_or(MEMBERS[#index], #bound, &mut self.#ident, #reset))
        }
        (true, None, _) => quote_spanned!(*span=> optional(MEMBERS[#index], &mut self.#ident)),
        (true, Some(bound), _) => {
            quote_spanned!(*span=> optional_bounded(MEMBERS[#index], #bound, &mut self.#ident))
        }
    };
    quote_spanned!(*span=> m.#call?;)
}

fn extend_member(index: usize, member: &Member) -> TokenStream {
    let Member { ty, span, .. } = member;
    match (member.optional, &member.attributes.bound) {
        (false, None) => quote_spanned!(*span=> m.member::<#ty>(MEMBERS[#index]);),
        (false, Some(bound)) => quote_spanned!(*span=> m.bounded::<#ty>(MEMBERS[#index], #bound);),
        (true, None) => quote_spanned!(*span=> m.optional::<#ty>(MEMBERS[#index]);),
        (true, Some(bound)) => quote_spanned!(*span=> m.optional_bounded::<#ty>(MEMBERS[#index], #bound);),
    }
}

fn type_support(ident: &Ident, container: &Container) -> TokenStream {
    let name = container.type_name(ident);
    quote! {
        #[automatically_derived]
        impl __xtypes::TypeSupport for #ident {
            const TYPE_NAME: &'static str = #name;
            const EXTENSIBILITY: __xtypes::Extensibility =
                <#ident as __xtypes::structure::StructType>::EXTENSIBILITY;
            const HAS_KEY: bool = <#ident as __xtypes::structure::StructType>::HAS_KEY;
        }
    }
}
