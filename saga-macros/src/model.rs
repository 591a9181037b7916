//! What was written, reduced to what matters: who takes what, and what is returned.

use proc_macro2::{Ident, TokenStream};
use quote::ToTokens;
use syn::{
    Attribute, FnArg, GenericArgument, Path, PathArguments, ReturnType, Signature, Type, TypePath, TypeReference,
    Visibility, parse_quote,
};

use crate::function::{Function, Kind};

/// An annotated function.
pub(crate) struct Model {
    pub(crate) kind: Kind,
    /// What else stands above the function, its documentation included.
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) visibility: Visibility,
    /// The `#[cfg(..)]` of the function, which hold for what is generated too.
    pub(crate) conditions: Vec<Attribute>,
    pub(crate) signature: Signature,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) returned: Returned,
}

/// A parameter of the function, in the order of its signature.
pub(crate) struct Parameter {
    /// The type as it was written, for `self` the receiver.
    pub(crate) written: TokenStream,
    /// The type without the reference, of a `Batch<T>` the `T`.
    pub(crate) ty: Type,
    pub(crate) role: Role,
    pub(crate) is_batch: bool,
}

/// What a parameter is, by its type alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// `&mut C`
    Connection,
    /// `&StepContext`
    Context,
    /// `State<T>`, or what an earlier step returned
    Read,
    /// Anything else by value: the input, and in a compensation the output after it.
    Value,
    /// `self` in any form.
    Receiver,
    /// `StepContext` or `&mut StepContext`
    ContextInWrongForm,
    /// The same by reference
    ReadByReference,
    /// Another `&T`, most likely meant as a value.
    ValueByReference,
    /// `&Connection` instead of `&mut Connection`.
    ConnectionByReference,
}

/// What the function returns.
pub(crate) enum Returned {
    /// `Result<T, E>`
    Result { value: Box<Type>, error: Box<Type> },
    /// An alias of it, known by a name that ends in `Result`.
    Alias(Box<Type>),
    /// Anything else.
    Other(ReturnType),
}

impl Model {
    pub(crate) fn new(kind: Kind, function: &Function) -> Self {
        let signature = function.signature.clone();
        Self {
            kind,
            attributes: function.attributes.clone(),
            visibility: function.visibility.clone(),
            conditions: function
                .attributes
                .iter()
                .filter(|attribute| attribute.path().is_ident("cfg"))
                .cloned()
                .collect(),
            parameters: signature.inputs.iter().map(Parameter::new).collect(),
            returned: Returned::new(&signature.output),
            signature,
        }
    }

    pub(crate) fn ident(&self) -> &Ident {
        &self.signature.ident
    }

    /// The parameters in this role.
    pub(crate) fn in_role(&self, role: Role) -> impl Iterator<Item = &Parameter> {
        self.parameters.iter().filter(move |parameter| parameter.role == role)
    }

    /// What is taken by value, or was meant so.
    pub(crate) fn values(&self) -> impl Iterator<Item = &Parameter> {
        self.parameters.iter().filter(|parameter| matches!(parameter.role, Role::Value | Role::ValueByReference))
    }

    /// The type of the step's input.
    pub(crate) fn input(&self) -> Option<&Type> {
        self.values().next().map(|parameter| &parameter.ty)
    }

    /// The input of a step that takes the inputs of many sagas at once.
    pub(crate) fn batch(&self) -> Option<&Parameter> {
        self.values().next().filter(|parameter| parameter.is_batch)
    }

    /// The `R` of `Result<BatchResults<R>, E>`, or of an alias that takes `BatchResults<R>`.
    pub(crate) fn answer(&self) -> Option<&Type> {
        self.inside_of_returned("BatchResults")
    }

    fn inside_of_returned(&self, name: &str) -> Option<&Type> {
        match &self.returned {
            Returned::Result { value, .. } => only_argument(value, name),
            Returned::Alias(ty) => {
                let arguments = last_segment(ty).map(|last| types_of(&last.arguments)).unwrap_or_default();
                arguments.into_iter().find_map(|argument| only_argument(argument, name))
            }
            Returned::Other(_) => None,
        }
    }

    /// The `T` of `Result<Resolved<T>, E>`, or of an alias that takes `Resolved<T>`.
    pub(crate) fn found(&self) -> Option<&Type> {
        self.inside_of_returned("Resolved")
    }

    /// The type of a compensation's second value.
    pub(crate) fn undone_output(&self) -> Option<&Type> {
        self.values().nth(1).map(|parameter| &parameter.ty)
    }

    /// The type of the connection.
    pub(crate) fn connection(&self) -> Option<&Type> {
        self.in_role(Role::Connection).next().map(|parameter| &parameter.ty)
    }
}

impl Parameter {
    fn new(argument: &FnArg) -> Self {
        match argument {
            FnArg::Receiver(receiver) => Self {
                written: receiver.to_token_stream(),
                ty: Type::Verbatim(TokenStream::new()),
                role: Role::Receiver,
                is_batch: false,
            },
            FnArg::Typed(typed) => {
                let (ty, role) = classify(&typed.ty);
                let is_value = matches!(role, Role::Value | Role::ValueByReference);
                let batched = only_argument(ty, "Batch").filter(|_| is_value);
                let is_batch = batched.is_some();
                let ty = batched.unwrap_or(ty);
                let ty = if role == Role::ValueByReference { owned(ty) } else { ty.clone() };
                Self { written: typed.ty.to_token_stream(), ty, role, is_batch }
            }
        }
    }
}

impl Returned {
    fn new(output: &ReturnType) -> Self {
        let other = || Self::Other(output.clone());
        let ReturnType::Type(_, ty) = output else {
            return other();
        };
        let ty = bare(ty);
        let Some(last) = last_segment(ty) else {
            return other();
        };
        if !last.ident.to_string().ends_with("Result") {
            return other();
        }
        match (last.ident == "Result", types_of(&last.arguments).as_slice()) {
            (true, [value, error]) => {
                Self::Result { value: Box::new((*value).clone()), error: Box::new((*error).clone()) }
            }
            _ => Self::Alias(Box::new(ty.clone())),
        }
    }
}

/// What a type that is only ever borrowed is as a value.
fn owned(ty: &Type) -> Type {
    match ty {
        Type::Slice(slice) => {
            let element = &slice.elem;
            parse_quote!(Vec<#element>)
        }
        Type::Path(_) if name_of(ty).is_some_and(|name| name == "str") => parse_quote!(String),
        sized => sized.clone(),
    }
}

/// A type without the parentheses and the invisible groups around it.
pub(crate) fn bare(ty: &Type) -> &Type {
    match ty {
        Type::Paren(inner) => bare(&inner.elem),
        Type::Group(inner) => bare(&inner.elem),
        other => other,
    }
}

/// The name of a type: the last segment of its path.
pub(crate) fn name_of(ty: &Type) -> Option<&Ident> {
    last_segment(ty).map(|segment| &segment.ident)
}

/// Tokens as a person would have written them.
pub(crate) fn text_of(tokens: &impl ToTokens) -> String {
    let spaced = tokens.to_token_stream().to_string();
    let tight =
        [(" < ", "<"), (" <", "<"), ("< ", "<"), (" >", ">"), (" :: ", "::"), (":: ", "::"), ("& ", "&"), (" ,", ",")];
    tight.iter().fold(spaced, |text, (from, to)| text.replace(from, to))
}

fn classify(written: &Type) -> (&Type, Role) {
    match bare(written) {
        Type::Reference(TypeReference { mutability, elem, .. }) => {
            let elem = bare(elem);
            let role = match (mutability, kind_of_name(elem)) {
                (None, Role::ContextInWrongForm) => Role::Context,
                (Some(_), Role::ContextInWrongForm) => Role::ContextInWrongForm,
                (_, Role::Read) => Role::ReadByReference,
                (Some(_), _) => Role::Connection,
                (None, _) if is_named_as_connection(elem) => Role::ConnectionByReference,
                (None, _) => Role::ValueByReference,
            };
            (elem, role)
        }
        by_value => (by_value, kind_of_name(by_value)),
    }
}

/// Whether a type has the name of a connection: that of rusqlite, of sqlx, or of the store in memory.
fn is_named_as_connection(ty: &Type) -> bool {
    name_of(ty).is_some_and(|name| ["Connection", "PgConnection", "MemoryConn"].iter().any(|known| name == known))
}

/// The role that the name of a type gives it, taken by value.
fn kind_of_name(ty: &Type) -> Role {
    let Some(last) = last_segment(ty) else {
        return Role::Value;
    };
    let generic = !last.arguments.is_empty();
    match last.ident.to_string().as_str() {
        "StepContext" => Role::ContextInWrongForm,
        "State" if generic => Role::Read,
        "Locked" => Role::Read,
        _ if is_output(ty) => Role::Read,
        _ => Role::Value,
    }
}

/// Whether a parameter reads what an earlier step returned: `Output<step>`, `Outputs<step>`, `Signaled<signal>`,
/// `Locked<lock>`, or an `Option` of one of them.
pub(crate) fn is_output(ty: &Type) -> bool {
    let Some(last) = last_segment(ty).filter(|last| !last.arguments.is_empty()) else { return false };
    match last.ident.to_string().as_str() {
        "Output" | "Outputs" | "Signaled" | "Locked" => true,
        "Option" => only_argument(ty, "Option").is_some_and(is_output),
        _ => false,
    }
}

/// Whether a parameter is a semantic lock of the saga: `Locked<lock>`, or an `Option` of it.
pub(crate) fn is_semantic_lock(ty: &Type) -> bool {
    let Some(last) = last_segment(ty).filter(|last| !last.arguments.is_empty()) else { return false };
    last.ident == "Locked" || only_argument(ty, "Option").is_some_and(is_semantic_lock)
}

/// Whether a parameter is the lock of the step itself: `Locked` without the name of a semantic lock.
pub(crate) fn is_own_lock(ty: &Type) -> bool {
    last_segment(ty).is_some_and(|last| last.ident == "Locked" && last.arguments.is_empty())
}

/// The `T` of a `Name<T>`.
fn only_argument<'t>(ty: &'t Type, name: &str) -> Option<&'t Type> {
    let last = last_segment(ty).filter(|segment| segment.ident == name)?;
    match types_of(&last.arguments)[..] {
        [only] => Some(only),
        _ => None,
    }
}

fn last_segment(ty: &Type) -> Option<&syn::PathSegment> {
    match bare(ty) {
        Type::Path(TypePath { qself: None, path: Path { segments, .. }, .. }) => segments.last(),
        _ => None,
    }
}

fn types_of(arguments: &PathArguments) -> Vec<&Type> {
    let PathArguments::AngleBracketed(list) = arguments else {
        return Vec::new();
    };
    let types = list.args.iter().filter_map(|argument| match argument {
        GenericArgument::Type(ty) => Some(ty),
        _ => None,
    });
    types.collect()
}
