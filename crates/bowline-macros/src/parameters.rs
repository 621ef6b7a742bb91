//! Reads the parameters of a function: arguments, the context, and invalid ones.

use crate::{docs, kind::Kind};
use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{
    Attribute, Error, FnArg, GenericArgument, Ident, LitStr, Pat, PatType, Path, PathArguments, Result,
    ReturnType, Signature, Type, ext::IdentExt,
};

/// The source of the arguments.
pub(crate) enum Input {
    Nothing,
    /// A struct that the macro writes.
    Fields(Vec<Field>),
    /// A struct of the author.
    Whole(Box<Type>),
}

/// A parameter that is a property of the arguments.
pub(crate) struct Field {
    pub(crate) ident: Ident,
    /// The name in JSON.
    pub(crate) name: String,
    pub(crate) ty: Type,
    pub(crate) attributes: Vec<Attribute>,
}

/// A function that suggests values for an argument.
pub(crate) struct Completer {
    pub(crate) path: Path,
    /// The closure to use instead, if the function is a method that needs the state.
    pub(crate) state: Option<TokenStream>,
}

impl ToTokens for Completer {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        match &self.state {
            Some(closure) => closure.to_tokens(tokens),
            None => self.path.to_tokens(tokens),
        }
    }
}

/// The parameters of a function.
pub(crate) struct Parameters {
    pub(crate) input: Input,
    /// The values to pass, in order, in terms of `__ctx` and `__args`.
    pub(crate) values: Vec<TokenStream>,
    pub(crate) types: Vec<Type>,
    /// The arguments with completion, and the functions that suggest values.
    pub(crate) completers: Vec<(String, Completer)>,
}

impl Parameters {
    /// Reads the parameters and removes their attributes. The caller handles `self`.
    pub(crate) fn take(kind: Kind, signature: &mut Signature) -> Result<Self> {
        check_signature(kind, signature)?;
        let mut parameters =
            Self { input: Input::Nothing, values: Vec::new(), types: Vec::new(), completers: Vec::new() };
        let mut whole = None;
        let mut fields = Vec::new();
        let mut has_context = false;
        for input in &mut signature.inputs {
            let FnArg::Typed(parameter) = input else { continue };
            let attributes = std::mem::take(&mut parameter.attrs);
            parameters.types.push((*parameter.ty).clone());
            if is_context(&parameter.ty) {
                if std::mem::replace(&mut has_context, true) {
                    return Err(Error::new_spanned(&*parameter, "duplicate `Ctx` parameter"));
                }
                parameters.values.push(quote!(__ctx));
                continue;
            }
            let is_whole = is_whole(parameter, &attributes);
            check_type(if is_whole { Kind::Tool } else { kind }, &parameter.ty)?;
            if is_whole {
                if let Some(attribute) =
                    attributes.iter().find(|attribute| !is_args(attribute) && !docs::is_doc(attribute))
                {
                    let reason = "attributes of arguments go on the fields of their struct";
                    return Err(Error::new_spanned(attribute, reason));
                }
                parameters.values.push(quote!(__args));
                whole = Some(parameter.clone());
                continue;
            }
            let field = field(parameter, attributes, &mut parameters.completers, kind)?;
            let ident = &field.ident;
            parameters.values.push(quote!(__args.#ident));
            fields.push(field);
        }
        parameters.input = match whole {
            Some(parameter)
                if !fields.is_empty() || parameters.types.len() > 1 + usize::from(has_context) =>
            {
                let reason = "a struct with all arguments must be the only parameter besides `Ctx`";
                return Err(Error::new_spanned(&parameter.pat, reason));
            }
            Some(parameter) => Input::Whole(parameter.ty),
            None if fields.is_empty() => Input::Nothing,
            None => Input::Fields(fields),
        };
        Ok(parameters)
    }
}

fn check_signature(kind: Kind, signature: &Signature) -> Result<()> {
    let generics = &signature.generics;
    if let Some(parameter) = generics.params.first() {
        let reason = format!("a {} cannot be generic: its arguments need one type each", kind.attribute());
        return Err(Error::new_spanned(parameter, reason));
    }
    if let Some(clause) = &generics.where_clause {
        return Err(Error::new_spanned(clause, format!("a {} has no `where` clause", kind.attribute())));
    }
    if let Some(variadic) = &signature.variadic {
        return Err(Error::new_spanned(variadic, format!("a {} takes named parameters", kind.attribute())));
    }
    if let ReturnType::Type(_, ty) = &signature.output
        && let Some(found) = find(ty, |ty| matches!(ty, Type::ImplTrait(_)))
    {
        let reason = format!("a {} cannot return `impl Trait`; name the type", kind.attribute());
        return Err(Error::new_spanned(found, reason));
    }
    Ok(())
}

fn check_type(kind: Kind, ty: &Type) -> Result<()> {
    if let Some(found) = find(ty, |ty| matches!(ty, Type::ImplTrait(_))) {
        let reason = format!("the parameter of a {} needs a type, not `impl Trait`", kind.attribute());
        return Err(Error::new_spanned(found, reason));
    }
    if kind != Kind::Tool
        && let Some(found) = find(ty, is_composite)
    {
        let what = if kind == Kind::Prompt { "the arguments of a prompt" } else { "the variables of a URI" };
        let reason = format!("clients send {what} as text: take `String`, a number, a bool or an enum");
        return Err(Error::new_spanned(found, reason));
    }
    let Some(found) = find(ty, |ty| matches!(ty, Type::Reference(_))) else { return Ok(()) };
    let reason = match found {
        Type::Reference(reference) if is_context(&reference.elem) => {
            "take `Ctx` by value; a clone of it is cheap"
        }
        _ => "arguments must be owned types: use `String` instead of `&str`, `Vec<T>` instead of `&[T]`",
    };
    Err(Error::new_spanned(found, reason))
}

/// Returns the first type within `ty`, including `ty` itself, that matches.
fn find(ty: &Type, wanted: fn(&Type) -> bool) -> Option<&Type> {
    if wanted(ty) {
        return Some(ty);
    }
    match ty {
        Type::Path(path) => path.path.segments.iter().find_map(|segment| match &segment.arguments {
            PathArguments::AngleBracketed(arguments) => {
                arguments.args.iter().find_map(|argument| match argument {
                    GenericArgument::Type(ty) => find(ty, wanted),
                    _ => None,
                })
            }
            PathArguments::None | PathArguments::Parenthesized(_) => None,
        }),
        Type::Tuple(tuple) => tuple.elems.iter().find_map(|ty| find(ty, wanted)),
        Type::Array(array) => find(&array.elem, wanted),
        Type::Slice(slice) => find(&slice.elem, wanted),
        Type::Paren(inner) => find(&inner.elem, wanted),
        Type::Group(inner) => find(&inner.elem, wanted),
        _ => None,
    }
}

/// Returns whether a value of this type cannot be written as text.
fn is_composite(ty: &Type) -> bool {
    const COLLECTIONS: &[&str] =
        &["Vec", "VecDeque", "HashMap", "BTreeMap", "HashSet", "BTreeSet", "IndexMap", "IndexSet"];
    match ty {
        Type::Tuple(_) | Type::Array(_) | Type::Slice(_) => true,
        Type::Path(path) => {
            path.path.segments.last().is_some_and(|last| COLLECTIONS.iter().any(|name| last.ident == name))
        }
        _ => false,
    }
}

fn is_context(ty: &Type) -> bool {
    matches!(ty, Type::Path(path) if path.path.segments.last().is_some_and(|segment| segment.ident == "Ctx"))
}

fn is_args(attribute: &Attribute) -> bool {
    attribute.path().is_ident("args")
}

fn is_whole(parameter: &PatType, attributes: &[Attribute]) -> bool {
    matches!(*parameter.pat, Pat::Struct(_)) || attributes.iter().any(is_args)
}

fn field(
    parameter: &PatType,
    mut attributes: Vec<Attribute>,
    completers: &mut Vec<(String, Completer)>,
    kind: Kind,
) -> Result<Field> {
    let ident = match &*parameter.pat {
        Pat::Ident(pattern) if pattern.by_ref.is_none() && pattern.subpat.is_none() => pattern.ident.clone(),
        pattern => {
            let reason = "a parameter has a plain name, which becomes the name of an argument";
            return Err(Error::new_spanned(pattern, reason));
        }
    };
    let name = wire_name(&ident, &attributes);
    if kind != Kind::Tool {
        // Completion belongs to the builder; everything else belongs to the field.
        for attribute in attributes.extract_if(.., |attribute| attribute.path().is_ident("complete")) {
            let reason = "expected a function, as in `#[complete(cities)]`";
            let path = attribute.parse_args().map_err(|_| Error::new_spanned(&attribute, reason))?;
            completers.push((name.clone(), Completer { path, state: None }));
        }
    }
    Ok(Field { ident, name, ty: (*parameter.ty).clone(), attributes })
}

/// Returns the name of a field in JSON: its own, unless serde renames it.
fn wire_name(ident: &Ident, attributes: &[Attribute]) -> String {
    let mut name = ident.unraw().to_string();
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("serde")) {
        // serde itself reports invalid attributes.
        let _ = attribute.parse_nested_meta(|meta| {
            if meta.path.is_ident("rename") {
                name = meta.value()?.parse::<LitStr>()?.value();
            } else if meta.input.peek(syn::Token![=]) {
                meta.value()?.parse::<syn::Expr>()?;
            }
            Ok(())
        });
    }
    name
}
