//! A value of many fields is made in one place: by its type.

use syn::punctuated::Punctuated;
use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};
use syn::{Expr, Token};

use crate::tidy::finding::Finding;
use crate::tidy::workspace::impls::self_type;
use crate::tidy::workspace::modules::{Crate, Crates, ItemId};

pub(crate) const RULE: &str = "wide_literal";

const FOLDERS: [&str; 4] = ["saga-core/src/", "saga-sqlite/src/", "saga-postgres/src/", "saga-amqp/src/"];

const FIELDS_MAX: usize = 5;

/// The traits whose methods are constructors of the type that implements them.
const CONSTRUCTORS: [&str; 6] = ["Clone", "Default", "From", "FromRow", "FromStr", "TryFrom"];

/// One finding for each literal with more fields than the limit, outside an inherent `impl` of its type and these traits'.
/// What `..base` gives is not counted.
pub(crate) fn is_in_a_constructor(crates: &Crates<'_>) -> Vec<Finding> {
    let asked = crates.0.iter().filter(|one| FOLDERS.contains(&one.folder.as_str()));
    asked.flat_map(check).collect()
}

fn check(one: &Crate<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (id, module) in one.modules.iter().enumerate() {
        let mut literals = Literals {
            one,
            module: id,
            constructs: None,
            makes_self: false,
            function: "top".to_owned(),
            findings: Vec::new(),
        };
        module.items.iter().for_each(|item| literals.visit_item(item));
        findings.extend(literals.findings);
    }
    findings
}

struct Literals<'a, 'b> {
    one: &'b Crate<'a>,
    module: usize,
    /// The type of whose own `impl` block we are in.
    constructs: Option<ItemId>,
    /// Whether `Self` is made here: the type may be one of another crate.
    makes_self: bool,
    /// The function we are in.
    function: String,
    findings: Vec<Finding>,
}

impl Literals<'_, '_> {
    /// The finding for a literal that is too wide, if its type does not make it itself.
    fn check(&self, literal: &syn::ExprStruct) -> Option<Finding> {
        let count = literal.fields.len();
        if count <= FIELDS_MAX {
            return None;
        }
        let names: Vec<String> = literal.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        let of = self.one.item(self.module, &names);
        let is_own =
            (self.makes_self && names.first()? == "Self") || (self.constructs.is_some() && of == self.constructs);
        if is_own {
            return None;
        }
        let name = names.join("::");
        let of = of.map_or_else(|| name.clone(), |of| of.name);
        let message = format!(
            "a literal of `{name}` with {count} fields, and {FIELDS_MAX} is the limit outside of `impl {of}`: give the type \
             a constructor that says what kind of value it makes"
        );
        let line = literal.path.span().start().line;
        let item = format!("{name}@{}", self.function);
        Some(Finding::of_rule(RULE, self.one.modules[self.module].file, line, item, message))
    }

    fn in_function(&mut self, name: String, visit: impl FnOnce(&mut Self)) {
        let outer = std::mem::replace(&mut self.function, name);
        visit(self);
        self.function = outer;
    }
}

impl<'a> Visit<'a> for Literals<'_, '_> {
    fn visit_item_impl(&mut self, block: &'a syn::ItemImpl) {
        let of_trait = block.trait_.as_ref().and_then(|(path, _)| path.segments.last());
        let constructs = of_trait.is_none_or(|name| CONSTRUCTORS.iter().any(|known| name.ident == known));
        let own = if constructs { self_type(self.one, self.module, block) } else { None };
        let outer = (std::mem::replace(&mut self.constructs, own), std::mem::replace(&mut self.makes_self, constructs));
        visit::visit_item_impl(self, block);
        (self.constructs, self.makes_self) = outer;
    }

    fn visit_item_fn(&mut self, function: &'a syn::ItemFn) {
        self.in_function(function.sig.ident.to_string(), |this| visit::visit_item_fn(this, function));
    }

    fn visit_impl_item_fn(&mut self, function: &'a syn::ImplItemFn) {
        self.in_function(function.sig.ident.to_string(), |this| visit::visit_impl_item_fn(this, function));
    }

    fn visit_expr_struct(&mut self, literal: &'a syn::ExprStruct) {
        self.findings.extend(self.check(literal));
        visit::visit_expr_struct(self, literal);
    }

    /// What a macro is given is read where it is a list of expressions, as most are.
    fn visit_macro(&mut self, call: &'a syn::Macro) {
        let parser = Punctuated::<Expr, Token![,]>::parse_terminated;
        if let Ok(arguments) = call.parse_body_with(parser) {
            arguments.iter().for_each(|argument| self.visit_expr(argument));
        }
    }

    fn visit_item_mod(&mut self, _: &'a syn::ItemMod) {}
}

#[cfg(test)]
mod tests {
    use super::is_in_a_constructor;
    use crate::tidy::workspace::modules::Crates;
    use crate::tidy::workspace::tree::Tree;

    const SIX: &str = "a: 1, b: 2, c: 3, d: 4, e: 5, f: 6";

    fn lines_of(path: &str, text: &str) -> Vec<usize> {
        let root = format!("{}lib.rs", path.strip_suffix("a.rs").expect("the file is a.rs"));
        let tree = Tree::of(&[(&root, "mod a;\n"), (path, &text.replace("SIX", SIX))]);
        is_in_a_constructor(&Crates::of(&tree)).iter().map(|finding| finding.line).collect()
    }

    fn lines(text: &str) -> Vec<usize> {
        lines_of("saga-core/src/a.rs", text)
    }

    #[test]
    fn wide_literals_are_found() {
        assert_eq!(lines("fn f() -> A {\n  A { SIX }\n}\n"), [2]);
        assert_eq!(lines("fn f() -> A { A { SIX, ..A::default() } }\n"), [1]);
        assert_eq!(lines("fn f() { g(|| vec![b::A { SIX }]) }\n"), [1]);
        assert_eq!(lines("impl B { fn f() -> A { A { SIX } } }\n"), [1]);
        assert_eq!(lines("enum A { B }\nfn f() -> A { A::B { SIX } }\n"), [2]);
        assert_eq!(lines("struct A;\nimpl From<A> for B { fn from(b: B) -> B { A { SIX }.b() } }\n"), [2]);
        assert_eq!(lines("struct A;\nimpl C for A { fn f(&self) -> Self { Self { SIX } } }\n"), [2]);
    }

    #[test]
    fn constructors_and_small_literals_pass() {
        assert_eq!(lines("struct A;\nimpl<S> A<S> { fn new() -> Self { Self { SIX } } }\n"), [0; 0]);
        assert_eq!(lines("struct A;\nimpl A { fn all() -> Vec<A> { vec![A { SIX }] } }\n"), [0; 0]);
        assert_eq!(lines("struct A;\nimpl Default for A { fn default() -> Self { Self { SIX } } }\n"), [0; 0]);
        assert_eq!(lines("struct A;\nimpl From<B> for A { fn from(b: B) -> A { A { SIX } } }\n"), [0; 0]);
        assert_eq!(lines("use b::A;\nimpl FromRow for A { fn from_row(row: R) -> Self { Self { SIX } } }\n"), [0; 0]);
        assert_eq!(lines("enum A { B }\nimpl A { fn new() -> Self { Self::B { SIX } } }\n"), [0; 0]);
        assert_eq!(lines("fn f() -> A { A { a: 1, b: 2, c: 3, d: 4, e: 5, ..A::default() } }\n"), [0; 0]);
        assert_eq!(
            lines("fn f(A { a, b, c, d, e, f }: A) {}\nstruct B { a: A, b: A, c: A, d: A, e: A, f: A }\n"),
            [0; 0]
        );
        assert_eq!(lines("#[cfg(test)]\nmod tests { fn f() -> A { A { SIX } } }\n"), [0; 0]);
        assert_eq!(lines_of("saga-testkit/src/a.rs", "fn f() -> A { A { SIX } }\n"), [0; 0]);
    }
}
