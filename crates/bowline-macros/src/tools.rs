//! `#[tools]`: the methods of a type with state.

use crate::{
    entry, handler,
    kind::Kind,
    options::Options,
    parameters::{Completer, Parameters},
};
use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote};
use syn::{
    Attribute, Error, FnArg, Ident, ImplItem, ImplItemFn, Item, ItemImpl, Meta, PathArguments, ReceiverKind,
    Result, Signature, Token, Type,
    ext::IdentExt,
    parenthesized,
    parse::{ParseStream, Parser},
    punctuated::Punctuated,
};

pub(crate) fn expand(arguments: &TokenStream, item: &TokenStream) -> TokenStream {
    let mut block = match syn::parse2::<Item>(item.clone()) {
        Ok(Item::Impl(block)) => block,
        Ok(other) => {
            let reason =
                "expected an `impl` block: put `#[tools]` on the block, and `#[tool]` on its methods";
            let error = Error::new_spanned(&other, reason).to_compile_error();
            return quote!(#error #item);
        }
        Err(error) => {
            let error = error.to_compile_error();
            return quote!(#error #item);
        }
    };
    let (role, mut result) = match Role::parse(arguments) {
        Ok(role) => (role, check_block(&block)),
        Err(error) => (Role::Whole(Vec::new()), Err(error)),
    };
    let mut entries = Vec::new();
    result = collect(&mut entries, result, &mut block);
    let error = result.err().map(|error| error.to_compile_error());
    let implementation = implementation(&role, &entries, &block);
    quote!(#error #block #implementation)
}

/// The role of a block.
enum Role {
    /// The block that is registered, with the parts that it includes.
    Whole(Vec<Ident>),
    /// A block that another one includes by this name.
    Part(Ident),
}

impl Role {
    fn parse(arguments: &TokenStream) -> Result<Self> {
        if arguments.is_empty() {
            return Ok(Self::Whole(Vec::new()));
        }
        let parser = |input: ParseStream<'_>| {
            let reason = "expected `#[tools]`, `#[tools(part = name)]` or `#[tools(include(name, …))]`";
            let wrong = |span: Span| Error::new(span, reason);
            let span = input.span();
            let key = input.call(Ident::parse_any).map_err(|_| wrong(span))?;
            if key == "part" {
                input.parse::<Token![=]>().map_err(|_| wrong(key.span()))?;
                return Ok(Self::Part(input.parse().map_err(|_| wrong(key.span()))?));
            }
            if key != "include" || !input.peek(syn::token::Paren) {
                return Err(wrong(key.span()));
            }
            let names;
            parenthesized!(names in input);
            let names = Punctuated::<Ident, Token![,]>::parse_terminated(&names)?;
            Ok(Self::Whole(names.into_iter().collect()))
        };
        parser.parse2(arguments.clone())
    }
}

/// Reads the marked methods and removes the marks, also after the first error.
fn collect(entries: &mut Vec<TokenStream>, mut result: Result<()>, block: &mut ItemImpl) -> Result<()> {
    let is_sound = result.is_ok();
    let mut marked = false;
    let methods: Vec<Signature> = block
        .items
        .iter()
        .filter_map(|item| match item {
            ImplItem::Fn(method) => Some(method.sig.clone()),
            _ => None,
        })
        .collect();
    for item in &mut block.items {
        let ImplItem::Fn(method) = item else { continue };
        let marks: Vec<Attribute> =
            method.attrs.extract_if(.., |attribute| Kind::of(attribute).is_some()).collect();
        let [mark, others @ ..] = marks.as_slice() else { continue };
        marked = true;
        let Some(kind) = Kind::of(mark).filter(|_| is_sound) else {
            unmark(method);
            continue;
        };
        let entry = match others.first() {
            Some(second) => Err(Error::new_spanned(
                second,
                "a method can only be one of `#[tool]`, `#[prompt]` and `#[resource]`",
            )),
            None => entry(kind, mark, method, &methods),
        };
        match entry {
            Ok(entry) => entries.push(entry),
            Err(error) => {
                result = result.and(Err(error));
                unmark(method);
            }
        }
    }
    if !marked {
        let reason = "no method of this block is marked `#[tool]`, `#[prompt]` or `#[resource(\"…\")]`";
        result = result.and_then(|()| Err(Error::new_spanned(&block.self_ty, reason)));
    }
    result
}

fn implementation(role: &Role, entries: &[TokenStream], block: &ItemImpl) -> TokenStream {
    let (generics, _, bounds) = block.generics.split_for_impl();
    let ty = &block.self_ty;
    let conditions: Vec<&Attribute> =
        block.attrs.iter().filter(|attribute| attribute.path().is_ident("cfg")).collect();
    let list = quote! {
        let mut __entries = ::bowline::__private::Entries::default();
        #(#entries)*
    };
    match role {
        Role::Whole(included) => {
            let parts = included.iter().map(part);
            quote! {
                #(#conditions)*
                #[automatically_derived]
                impl #generics ::bowline::__private::Toolset for #ty #bounds {
                    fn into_entries(self: ::std::sync::Arc<Self>) -> ::bowline::__private::Entries {
                        #list
                        #(__entries.append(Self::#parts(::std::sync::Arc::clone(&self)));)*
                        __entries
                    }
                }
            }
        }
        Role::Part(name) => {
            let part = part(name);
            quote! {
                #(#conditions)*
                #[automatically_derived]
                impl #generics #ty #bounds {
                    #[doc(hidden)]
                    pub(crate) fn #part(self: ::std::sync::Arc<Self>) -> ::bowline::__private::Entries {
                        #list
                        __entries
                    }
                }
            }
        }
    }
}

/// Returns the name of the function that returns the entries of a part.
fn part(name: &Ident) -> Ident {
    format_ident!("__entries_of_{}", name.unraw(), span = name.span())
}

fn check_block(block: &ItemImpl) -> Result<()> {
    match &block.trait_ {
        Some((path, _)) => {
            Err(Error::new_spanned(path, "`#[tools]` goes on the type's own `impl` block, not a trait's"))
        }
        None => Ok(()),
    }
}

/// Removes the attributes that only `#[tools]` understands from a method with errors.
fn unmark(method: &mut ImplItemFn) {
    for input in &mut method.sig.inputs {
        if let FnArg::Typed(parameter) = input {
            parameter.attrs.clear();
        }
    }
}

/// Writes the statement that adds the entry of one method.
fn entry(
    kind: Kind,
    mark: &Attribute,
    method: &mut ImplItemFn,
    methods: &[Signature],
) -> Result<TokenStream> {
    let arguments = match &mark.meta {
        Meta::Path(_) => TokenStream::new(),
        Meta::List(list) => list.tokens.clone(),
        Meta::NameValue(pair) => {
            let reason = format!("expected `#[{}(…)]`", kind.attribute());
            return Err(Error::new_spanned(pair, reason));
        }
    };
    let options = Options::parse(kind, arguments)?;
    let receiver = receiver(kind, &method.sig)?;
    let mut parameters = Parameters::take(kind, &mut method.sig)?;
    for (_, completer) in &mut parameters.completers {
        completer.state = stateful_completer(completer, methods)?;
    }
    let ident = &method.sig.ident;
    let builder = entry::builder(kind, ident, &method.attrs, &options, &parameters)?;
    let names = handler::closure_parameters(&parameters);
    let is_async = method.sig.asyncness.is_some();
    let closure = closure(ident, is_async, receiver, &names, &parameters.values);
    let entry = handler::hand(kind, &builder, &method.sig, &parameters, &options, &closure)?;
    let struct_of_arguments = handler::arguments(&parameters);
    method.attrs.push(handler::lints());
    let conditions = method.attrs.iter().filter(|attribute| attribute.path().is_ident("cfg"));
    let adder = kind.adder();
    Ok(quote!(#(#conditions)* { #struct_of_arguments __entries.#adder(#entry); }))
}

/// Writes a closure over the state that calls a method with `values`.
fn closure(
    method: &Ident,
    is_async: bool,
    receiver: Receiver,
    parameters: &TokenStream,
    values: &[TokenStream],
) -> TokenStream {
    let state = match receiver {
        Receiver::Nothing => return quote!(|#parameters| Self::#method(#(#values),*)),
        Receiver::Reference => quote!(&__state),
        Receiver::Shared => quote!(::std::sync::Arc::clone(&__state)),
    };
    let call = if is_async {
        quote!({
            let __state = ::std::sync::Arc::clone(&__state);
            async move { Self::#method(#state, #(#values),*).await }
        })
    } else {
        quote!(Self::#method(#state, #(#values),*))
    };
    quote!({
        let __state = ::std::sync::Arc::clone(&self);
        move |#parameters| #call
    })
}

/// Writes the closure for a completer that is a method of the same block: `#[complete(Self::cities)]`.
fn stateful_completer(completer: &Completer, methods: &[Signature]) -> Result<Option<TokenStream>> {
    let segments = &completer.path.segments;
    let (Some(first), Some(last), 2) = (segments.first(), segments.last(), segments.len()) else {
        return Ok(None);
    };
    let Some(method) = methods.iter().find(|method| first.ident == "Self" && method.ident == last.ident)
    else {
        return Ok(None);
    };
    let receiver = receiver(Kind::Prompt, method)?;
    if matches!(receiver, Receiver::Nothing) {
        return Ok(None);
    }
    let types: Vec<&Type> = method
        .inputs
        .iter()
        .filter_map(|input| match input {
            FnArg::Typed(parameter) => Some(&*parameter.ty),
            FnArg::Receiver(_) => None,
        })
        .collect();
    let names: Vec<TokenStream> = (0..types.len())
        .map(|index| {
            let name = format_ident!("__{index}");
            quote!(#name)
        })
        .collect();
    let parameters = quote!(#(#names: #types),*);
    Ok(Some(closure(&method.ident, method.asyncness.is_some(), receiver, &parameters, &names)))
}

/// How a method receives the state.
#[derive(Clone, Copy)]
enum Receiver {
    /// It does not.
    Nothing,
    /// `&self` or `self: &Arc<Self>`.
    Reference,
    /// `self: Arc<Self>`.
    Shared,
}

fn receiver(kind: Kind, signature: &Signature) -> Result<Receiver> {
    let Some(receiver) = signature.receiver() else { return Ok(Receiver::Nothing) };
    match &receiver.kind {
        ReceiverKind::Reference(_, None, None) => return Ok(Receiver::Reference),
        ReceiverKind::Typed(_, ty) if is_shared(ty) => return Ok(Receiver::Shared),
        ReceiverKind::Typed(_, ty) => {
            if let Type::Reference(reference) = &**ty
                && reference.mutability.is_none()
                && is_shared(&reference.elem)
            {
                return Ok(Receiver::Reference);
            }
        }
        _ => {}
    }
    let kind = kind.attribute();
    let reason = format!(
        "a {kind} takes `&self` or `self: Arc<Self>`: calls that run at the same time share the state"
    );
    Err(Error::new_spanned(receiver, reason))
}

/// Returns whether this is `Arc<Self>`.
fn is_shared(ty: &Type) -> bool {
    let Type::Path(path) = ty else { return false };
    path.path.segments.last().is_some_and(|segment| {
        segment.ident == "Arc" && matches!(segment.arguments, PathArguments::AngleBracketed(_))
    })
}
