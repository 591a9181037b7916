//! Which type parameters belong to the store, and which to the type that stands for the function.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote};
use syn::{Path, PredicateType, Token, Type, TypeParam, TypeParamBound, WherePredicate, punctuated::Punctuated};

use crate::{
    args::Options,
    krate::Krate,
    model::{Model, Returned, Role, bare},
};

/// The type parameters of the function, sorted.
pub(crate) struct Generics<'m> {
    model: &'m Model,
    store: StoreIs<'m>,
    /// The parameters of the type that stands for the function.
    of_type: Vec<&'m TypeParam>,
}

/// The stores that the function runs on.
enum StoreIs<'m> {
    /// It takes no connection: all.
    Any,
    /// `&mut C`: those whose connection is `C`.
    WithConnection(&'m Type),
    /// `&mut S::Conn`: the parameter itself.
    Parameter(&'m Ident),
    /// `&mut impl Trait`: those whose connection implements the trait.
    WithConnectionOf(&'m Punctuated<TypeParamBound, Token![+]>),
}

impl<'m> Generics<'m> {
    pub(crate) fn new(model: &'m Model, options: &Options) -> Self {
        let parameters: Vec<&TypeParam> = model.signature.generics.type_params().collect();
        let is_parameter = |ident: &Ident| parameters.iter().any(|parameter| parameter.ident == *ident);
        let store = match model.connection() {
            None => StoreIs::Any,
            Some(ty) => match (bare(ty), store_parameter(ty).filter(|ident| is_parameter(ident))) {
                (Type::ImplTrait(opaque), _) => StoreIs::WithConnectionOf(&opaque.bounds),
                (_, Some(parameter)) => StoreIs::Parameter(parameter),
                (_, None) => StoreIs::WithConnection(ty),
            },
        };
        let of_the_store = match &store {
            StoreIs::Any | StoreIs::WithConnectionOf(_) => None,
            StoreIs::Parameter(parameter) => Some(*parameter),
            StoreIs::WithConnection(ty) => only_ident(ty).filter(|ident| is_parameter(ident)),
        };
        let visible = visible_tokens(model, options);
        let of_type = parameters
            .iter()
            .filter(|parameter| Some(&parameter.ident) != of_the_store || mentions(&visible, &parameter.ident))
            .copied()
            .collect();
        Self { model, store, of_type }
    }

    /// The declaration of the type that stands for the function.
    pub(crate) fn declaration(&self) -> TokenStream {
        let ident = self.model.ident();
        if self.of_type.is_empty() {
            return quote!(struct #ident {});
        }
        let parameters = self.of_type.iter().map(|parameter| self.declared(parameter));
        let arguments = self.of_type.iter().map(|parameter| &parameter.ident);
        quote!(struct #ident<#(#parameters),*> { __types: ::core::marker::PhantomData<(#(fn() -> #arguments,)*)> })
    }

    /// The type that stands for the function.
    pub(crate) fn this(&self) -> TokenStream {
        let ident = self.model.ident();
        let arguments = self.of_type.iter().map(|parameter| &parameter.ident);
        if self.of_type.is_empty() { quote!(#ident) } else { quote!(#ident<#(#arguments),*>) }
    }

    /// The parameters and the bounds of an `impl` that has nothing to do with a store.
    pub(crate) fn without_store(&self) -> (TokenStream, TokenStream) {
        let parameters = self.of_type.iter().map(|parameter| self.declared(parameter));
        let known = |predicate: &TokenStream| {
            let others = self.model.signature.generics.type_params().filter(|other| !self.is_of_type(&other.ident));
            others.into_iter().all(|other| !mentions(predicate, &other.ident))
        };
        let bounds = self.predicates().into_iter().filter(known).chain(self.lasting());
        (quote!(<#(#parameters),*>), quote!(where #(#bounds,)*))
    }

    /// The store, and the parameters and the bounds of an `impl` for it.
    pub(crate) fn with_store(&self, krate: &Krate) -> (TokenStream, TokenStream, TokenStream) {
        let store = quote!(#krate::__private::Store);
        let mut parameters: Vec<TokenStream> =
            self.model.signature.generics.type_params().map(|parameter| self.declared(parameter)).collect();
        let mut bounds = self.predicates();
        bounds.extend(self.lasting());
        bounds.extend(self.readable(krate));
        let fresh = format_ident!("__S", span = Span::mixed_site());
        let name = match &self.store {
            StoreIs::Any => {
                parameters.push(quote!(#fresh: #store));
                fresh
            }
            StoreIs::WithConnection(connection) if self.has_known_connection() => {
                parameters.push(quote!(#fresh: #store));
                bounds.push(quote!(<#fresh as #store>::Conn: #krate::__private::ConnectionIs<#connection>));
                fresh
            }
            // Only this form determines a type parameter in the connection.
            StoreIs::WithConnection(connection) => {
                parameters.push(quote!(#fresh: #store<Conn = #connection>));
                fresh
            }
            StoreIs::Parameter(parameter) => {
                bounds.push(quote!(#parameter: #store));
                (*parameter).clone()
            }
            StoreIs::WithConnectionOf(implemented) => {
                parameters.push(quote!(#fresh: #store));
                bounds.push(quote!(<#fresh as #store>::Conn: #implemented));
                fresh
            }
        };
        (name.into_token_stream(), quote!(<#(#parameters),*>), quote!(where #(#bounds,)*))
    }

    /// The function with its type arguments, to be called.
    pub(crate) fn function(&self) -> TokenStream {
        let ident = self.model.ident();
        let arguments: Vec<&Ident> =
            self.model.signature.generics.type_params().map(|parameter| &parameter.ident).collect();
        if arguments.is_empty() { quote!(#ident) } else { quote!(#ident::<#(#arguments),*>) }
    }

    /// The alias of the compensation.
    pub(crate) fn compensation(&self, path: &Path) -> TokenStream {
        self.alias("__Compensation", path)
    }

    /// The alias of the resolution.
    pub(crate) fn resolution(&self, path: &Path) -> TokenStream {
        self.alias("__Resolution", path)
    }

    /// An alias of the path: it has those parameters of the type that the path names.
    fn alias(&self, name: &str, path: &Path) -> TokenStream {
        let alias = format_ident!("{name}", span = Span::mixed_site());
        let path = path.to_token_stream();
        let arguments = self.of_type.iter().map(|parameter| &parameter.ident).filter(|ident| mentions(&path, ident));
        let arguments: Vec<&Ident> = arguments.collect();
        if arguments.is_empty() { quote!(#alias) } else { quote!(#alias<#(#arguments),*>) }
    }

    /// Whether the function takes a connection in whose type there is no type parameter.
    pub(crate) fn has_known_connection(&self) -> bool {
        let StoreIs::WithConnection(ty) = &self.store else { return false };
        let tokens = ty.to_token_stream();
        !self.model.signature.generics.type_params().any(|parameter| mentions(&tokens, &parameter.ident))
    }

    fn is_of_type(&self, ident: &Ident) -> bool {
        self.of_type.iter().any(|parameter| parameter.ident == *ident)
    }

    /// The bounds of the function, one by one, without `?Sized`, which stands where a parameter is declared.
    fn predicates(&self) -> Vec<TokenStream> {
        let generics = &self.model.signature.generics;
        let inline = generics.type_params().flat_map(|parameter| {
            let ident = &parameter.ident;
            demanded(&parameter.bounds).map(move |bound| quote!(#ident: #bound))
        });
        let written = generics.where_clause.iter().flat_map(|clause| &clause.predicates);
        let written = written.flat_map(|predicate| match predicate {
            WherePredicate::Type(PredicateType { lifetimes, bounded_ty, bounds, .. }) => {
                demanded(bounds).map(|bound| quote!(#lifetimes #bounded_ty: #bound)).collect()
            }
            other => vec![other.to_token_stream()],
        });
        inline.chain(written).collect()
    }

    /// A parameter as it is declared; its bounds stand in the `where`, but for `?Sized`.
    fn declared(&self, parameter: &TypeParam) -> TokenStream {
        let ident = &parameter.ident;
        let clause = self.model.signature.generics.where_clause.iter().flat_map(|clause| &clause.predicates);
        let elsewhere = clause.filter_map(|predicate| match predicate {
            WherePredicate::Type(predicate) if only_ident(&predicate.bounded_ty) == Some(ident) => {
                Some(&predicate.bounds)
            }
            _ => None,
        });
        let relaxed = parameter.bounds.iter().chain(elsewhere.flatten()).filter(|bound| is_relaxed(bound));
        quote!(#ident: #(#relaxed)+*)
    }

    /// The runtime can read a parameter that has a type parameter in it. That it cannot is an error of the step, and
    /// here it is assumed, so that the step's future is not an error as well.
    fn readable(&self, krate: &Krate) -> impl Iterator<Item = TokenStream> {
        let generic =
            |ty: &&Type| self.of_type.iter().any(|parameter| mentions(&ty.to_token_stream(), &parameter.ident));
        let types = self.model.in_role(Role::Read).map(|parameter| &parameter.ty).filter(generic);
        types.map(move |ty| quote!(#ty: #krate::__private::FromStep + Send))
    }

    /// A step outlives every call, and so do the types that it is made with.
    fn lasting(&self) -> impl Iterator<Item = TokenStream> {
        self.of_type.iter().map(|parameter| {
            let ident = &parameter.ident;
            quote!(#ident: 'static)
        })
    }
}

/// Whether any identifier in the tokens, at any depth, is one that is looked for.
pub(crate) fn any_ident(tokens: &TokenStream, wanted: &impl Fn(&Ident) -> bool) -> bool {
    tokens.clone().into_iter().any(|token| match token {
        TokenTree::Ident(ident) => wanted(&ident),
        TokenTree::Group(group) => any_ident(&group.stream(), wanted),
        TokenTree::Punct(_) | TokenTree::Literal(_) => false,
    })
}

fn mentions(tokens: &TokenStream, ident: &Ident) -> bool {
    any_ident(tokens, &|found| found == ident)
}

/// All that the step shows to others, whatever the store: input, output, parameters, compensation.
fn visible_tokens(model: &Model, options: &Options) -> TokenStream {
    let parameters = model.parameters.iter().filter(|parameter| parameter.role != Role::Connection);
    let mut tokens: TokenStream = parameters.map(|parameter| parameter.ty.to_token_stream()).collect();
    match &model.returned {
        Returned::Result { value, .. } => value.to_tokens(&mut tokens),
        Returned::Alias(ty) => ty.to_tokens(&mut tokens),
        Returned::Other(_) => {}
    }
    options.compensate.to_tokens(&mut tokens);
    options.resolve.to_tokens(&mut tokens);
    tokens
}

/// The `S` of `S::Conn` or of `<S as Store>::Conn`.
fn store_parameter(connection: &Type) -> Option<&Ident> {
    let Type::Path(path) = bare(connection) else {
        return None;
    };
    let segments = &path.path.segments;
    if segments.last()?.ident != "Conn" {
        return None;
    }
    match &path.qself {
        Some(qself) => only_ident(&qself.ty),
        None if segments.len() == 2 => segments.first().map(|segment| &segment.ident),
        None => None,
    }
}

/// The identifier that is all of a type.
fn only_ident(ty: &Type) -> Option<&Ident> {
    match bare(ty) {
        Type::Path(path) if path.qself.is_none() => path.path.get_ident(),
        _ => None,
    }
}

/// The bounds that ask for something.
fn demanded(bounds: &Punctuated<TypeParamBound, Token![+]>) -> impl Iterator<Item = &TypeParamBound> {
    bounds.iter().filter(|bound| !is_relaxed(bound))
}

fn is_relaxed(bound: &TypeParamBound) -> bool {
    matches!(bound, TypeParamBound::Trait(bound) if bound.maybe.is_some())
}
