//! `#[tools]`: the methods of a state.

use crate::{entry, handler, kind::Kind, options::Options, parameters::Parameters};
use proc_macro2::TokenStream;
use quote::quote;
use syn::{Attribute, Error, FnArg, ImplItem, ImplItemFn, Item, ItemImpl, Meta, ReceiverKind, Result};

pub(crate) fn expand(arguments: &TokenStream, item: &TokenStream) -> TokenStream {
    let mut block = match syn::parse2::<Item>(item.clone()) {
        Ok(Item::Impl(block)) => block,
        Ok(other) => {
            let reason = "`#[tools]` goes on an `impl` block, and `#[tool]` on the methods in it";
            let error = Error::new_spanned(&other, reason).to_compile_error();
            return quote!(#error #item);
        }
        Err(error) => {
            let error = error.to_compile_error();
            return quote!(#error #item);
        }
    };
    let mut entries = Entries::default();
    let error = entries.collect(arguments, &mut block).err().map(|error| error.to_compile_error());
    let toolset = entries.implementation(&block);
    quote!(#error #block #toolset)
}

/// What the methods offer.
#[derive(Default)]
struct Entries {
    tools: Vec<TokenStream>,
    prompts: Vec<TokenStream>,
    resources: Vec<TokenStream>,
}

impl Entries {
    /// Reads the marked methods and takes the marks off them, also after the first error.
    fn collect(&mut self, arguments: &TokenStream, block: &mut ItemImpl) -> Result<()> {
        let mut result = check_block(arguments, block);
        let is_sound = result.is_ok();
        let mut marked = false;
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
                Some(second) => {
                    Err(Error::new_spanned(second, "a method is one of tool, prompt and resource"))
                }
                None => entry(kind, mark, method),
            };
            match entry {
                Ok(entry) => self.of(kind).push(entry),
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

    fn of(&mut self, kind: Kind) -> &mut Vec<TokenStream> {
        match kind {
            Kind::Tool => &mut self.tools,
            Kind::Prompt => &mut self.prompts,
            Kind::Resource => &mut self.resources,
        }
    }

    fn implementation(&self, block: &ItemImpl) -> TokenStream {
        let (generics, _, bounds) = block.generics.split_for_impl();
        let ty = &block.self_ty;
        let conditions = block.attrs.iter().filter(|attribute| attribute.path().is_ident("cfg"));
        let tools = list("into_tools", Kind::Tool, &self.tools);
        let prompts = (!self.prompts.is_empty()).then(|| list("into_prompts", Kind::Prompt, &self.prompts));
        let resources =
            (!self.resources.is_empty()).then(|| list("into_resources", Kind::Resource, &self.resources));
        quote! {
            #(#conditions)*
            #[automatically_derived]
            impl #generics ::bowline::__private::Toolset for #ty #bounds {
                #tools
                #prompts
                #resources
            }
        }
    }
}

fn list(method: &str, kind: Kind, entries: &[TokenStream]) -> TokenStream {
    let method = syn::Ident::new(method, proc_macro2::Span::call_site());
    let builder = kind.builder();
    quote! {
        fn #method(self: ::std::sync::Arc<Self>) -> ::std::vec::Vec<::bowline::__private::#builder> {
            ::std::vec::Vec::<::bowline::__private::#builder>::from([#(#entries),*])
        }
    }
}

fn check_block(arguments: &TokenStream, block: &ItemImpl) -> Result<()> {
    if !arguments.is_empty() {
        return Err(Error::new_spanned(arguments, "`#[tools]` takes no arguments"));
    }
    match &block.trait_ {
        Some((path, _)) => {
            Err(Error::new_spanned(path, "`#[tools]` goes on the type's own `impl` block, not a trait's"))
        }
        None => Ok(()),
    }
}

/// A method that was not understood keeps no attribute that only `#[tools]` understands.
fn unmark(method: &mut ImplItemFn) {
    for input in &mut method.sig.inputs {
        if let FnArg::Typed(parameter) = input {
            parameter.attrs.clear();
        }
    }
}

/// The expression that makes the entry of one method.
fn entry(kind: Kind, mark: &Attribute, method: &mut ImplItemFn) -> Result<TokenStream> {
    let arguments = match &mark.meta {
        Meta::Path(_) => TokenStream::new(),
        Meta::List(list) => list.tokens.clone(),
        Meta::NameValue(pair) => {
            let reason = format!("expected `#[{}(…)]`", kind.attribute());
            return Err(Error::new_spanned(pair, reason));
        }
    };
    let options = Options::parse(kind, arguments)?;
    let state = state(kind, method)?;
    let parameters = Parameters::take(kind, &mut method.sig)?;
    let ident = &method.sig.ident;
    let builder = entry::builder(kind, ident, &method.attrs, &options, &parameters)?;
    let values = &parameters.values;
    let names = handler::closure_parameters(&parameters);
    let closure = match (state, method.sig.asyncness.is_some()) {
        (State::Unused, _) => quote!(|#names| Self::#ident(#(#values),*)),
        (State::Shared, false) => quote!({
            let __state = ::std::sync::Arc::clone(&self);
            move |#names| Self::#ident(&__state, #(#values),*)
        }),
        (State::Shared, true) => quote!({
            let __state = ::std::sync::Arc::clone(&self);
            move |#names| {
                let __state = ::std::sync::Arc::clone(&__state);
                async move { Self::#ident(&__state, #(#values),*).await }
            }
        }),
    };
    let entry = handler::hand(kind, &builder, &method.sig, &parameters, &options, &closure)?;
    let struct_of_arguments = handler::arguments(&parameters);
    method.attrs.push(handler::lints());
    let conditions = method.attrs.iter().filter(|attribute| attribute.path().is_ident("cfg"));
    Ok(quote!(#(#conditions)* { #struct_of_arguments #entry }))
}

/// Whether a method looks at the state.
#[derive(Clone, Copy)]
enum State {
    Shared,
    Unused,
}

fn state(kind: Kind, method: &ImplItemFn) -> Result<State> {
    let Some(receiver) = method.sig.receiver() else { return Ok(State::Unused) };
    if let ReceiverKind::Reference(_, None, None) = receiver.kind {
        return Ok(State::Shared);
    }
    let kind = kind.attribute();
    let reason = format!("a {kind} takes `&self`: calls that run at the same time share the state");
    Err(Error::new_spanned(receiver, reason))
}
