//! Rust as a syntax tree, without what is compiled for tests only.

use std::ops::RangeInclusive;

use proc_macro2::TokenStream;
use syn::spanned::Spanned;
use syn::{Attribute, ImplItem, Item, Meta, TraitItem};

/// A file's items that ship.
#[derive(Default)]
pub(crate) struct Syntax {
    pub(crate) items: Vec<Item>,
    /// The lines of the items that were left out, their attributes included.
    pub(crate) test_lines: Vec<RangeInclusive<usize>>,
    /// The modules among them that stand at the top of the file.
    pub(crate) test_modules: Vec<String>,
}

impl Syntax {
    pub(crate) fn parse(file: TokenStream) -> syn::Result<Self> {
        let mut syntax = Self { items: syn::parse2::<syn::File>(file)?.items, ..Self::default() };
        let for_tests = syntax.items.iter().filter(|item| is_test_only(attributes(item)));
        syntax.test_modules = for_tests.filter_map(module_name).collect();
        syntax.test_lines = keep_shipped(&mut syntax.items);
        Ok(syntax)
    }

    /// Whether the line is part of an item for tests.
    pub(crate) fn is_for_tests(&self, line: usize) -> bool {
        self.test_lines.iter().any(|lines| lines.contains(&line))
    }
}

fn module_name(item: &Item) -> Option<String> {
    if let Item::Mod(module) = item { Some(module.ident.to_string()) } else { None }
}

/// Whether `#[cfg(test)]` or the like stands among the attributes.
pub(crate) fn is_test_only(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("test")
            || attribute.path().is_ident("cfg")
                && attribute.parse_args::<Meta>().is_ok_and(|condition| asks_for_tests(&condition))
    })
}

/// Whether the condition holds in a build of tests only.
fn asks_for_tests(condition: &Meta) -> bool {
    let Meta::List(list) = condition else { return condition.path().is_ident("test") };
    let parser = syn::punctuated::Punctuated::<Meta, syn::Token![,]>::parse_terminated;
    let Ok(conditions) = list.parse_args_with(parser) else { return false };
    if list.path.is_ident("all") {
        conditions.iter().any(asks_for_tests)
    } else {
        list.path.is_ident("any") && conditions.iter().all(asks_for_tests)
    }
}

/// Removes what is for tests only, and returns its lines.
fn keep_shipped(items: &mut Vec<Item>) -> Vec<RangeInclusive<usize>> {
    let mut removed = Vec::new();
    items.retain(|item| keep(attributes(item), item, &mut removed));
    for item in items {
        match item {
            Item::Mod(module) => {
                if let Some((_, items)) = &mut module.content {
                    removed.extend(keep_shipped(items));
                }
            }
            Item::Impl(block) => {
                block.items.retain(|item| keep(attributes_of_impl_item(item), item, &mut removed));
            }
            Item::Trait(definition) => {
                definition.items.retain(|item| keep(attributes_of_trait_item(item), item, &mut removed));
            }
            _ => {}
        }
    }
    removed
}

fn keep(attributes: &[Attribute], item: &impl Spanned, removed: &mut Vec<RangeInclusive<usize>>) -> bool {
    let is_kept = !is_test_only(attributes);
    if !is_kept {
        let span = item.span();
        removed.push(span.start().line..=span.end().line);
    }
    is_kept
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::ExternCrate(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::ForeignMod(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::TraitAlias(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

fn attributes_of_impl_item(item: &ImplItem) -> &[Attribute] {
    match item {
        ImplItem::Const(item) => &item.attrs,
        ImplItem::Fn(item) => &item.attrs,
        ImplItem::Type(item) => &item.attrs,
        ImplItem::Macro(item) => &item.attrs,
        _ => &[],
    }
}

fn attributes_of_trait_item(item: &TraitItem) -> &[Attribute] {
    match item {
        TraitItem::Const(item) => &item.attrs,
        TraitItem::Fn(item) => &item.attrs,
        TraitItem::Type(item) => &item.attrs,
        TraitItem::Macro(item) => &item.attrs,
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::Syntax;

    fn parse(text: &str) -> Syntax {
        Syntax::parse(text.parse().expect("the snippet is Rust")).expect("the snippet is Rust")
    }

    #[test]
    fn items_for_tests_are_left_out() {
        let text = "#[cfg(test)]\nmod a {\n}\n#[cfg(all(test, feature = \"x\"))]\nfn b() {}\nfn c() {}\n";
        let syntax = parse(text);
        assert_eq!((syntax.items.len(), syntax.test_modules.as_slice()), (1, ["a".to_owned()].as_slice()));
        let lines: Vec<bool> = (1..=6).map(|line| syntax.is_for_tests(line)).collect();
        assert_eq!(lines, [true, true, true, true, true, false]);
        let inside = parse("impl A {\n  #[cfg(test)]\n  fn b() {}\n}\nmod c {\n  #[cfg(test)]\n  use d::E;\n}\n");
        assert_eq!(inside.test_lines, [2..=3, 6..=7]);
    }

    #[test]
    fn items_that_ship_as_well_are_kept() {
        for gate in ["not(test)", "any(test, feature = \"x\")", "feature = \"test\""] {
            assert_eq!(parse(&format!("#[cfg({gate})]\nfn a() {{}}\n")).items.len(), 1, "{gate}");
        }
    }
}
