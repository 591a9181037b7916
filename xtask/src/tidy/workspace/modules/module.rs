//! One module: the items it defines, and the names it brings in.

use std::collections::{BTreeMap, BTreeSet};

use syn::Item;
use syn::visit::Visit;

use super::uses::{Leaf, leaves};

/// A module of a crate, by its place in [`Crate::modules`](super::Crate::modules).
pub(crate) type ModuleId = usize;

/// A module: a file, or a module with a body inside one.
pub(crate) struct Module<'a> {
    /// The file's path from the workspace's root.
    pub(crate) file: &'a str,
    pub(crate) items: &'a [Item],
    pub(super) parent: Option<ModuleId>,
    pub(super) children: BTreeMap<String, ModuleId>,
    /// The names of the items that it defines itself, modules left out.
    pub(super) names: BTreeSet<String>,
    /// What `use` brings in: the name here, and the path it stands for.
    pub(super) imported: Vec<(String, Vec<String>)>,
    /// The paths of `use a::b::*`.
    pub(super) globs: Vec<Vec<String>>,
    /// Whether it defines anything itself: a module that only lists and re-exports is a table of contents.
    pub(crate) defines: bool,
}

impl<'a> Module<'a> {
    pub(super) fn new(file: &'a str, items: &'a [Item], parent: Option<ModuleId>) -> Self {
        let mut uses = Uses(Vec::new());
        items.iter().filter(|item| !matches!(item, Item::Mod(_))).for_each(|item| uses.visit_item(item));
        let mut imported = Vec::new();
        let mut globs = Vec::new();
        for leaf in uses.0 {
            match leaf.name {
                Some(name) => imported.push((name, leaf.path)),
                None if leaf.is_glob => globs.push(leaf.path),
                None => {}
            }
        }
        let defines = items.iter().any(|item| !matches!(item, Item::Mod(_) | Item::Use(_) | Item::ExternCrate(_)));
        let names = items.iter().filter_map(name).collect();
        Self { file, items, parent, children: BTreeMap::new(), names, imported, globs, defines }
    }
}

/// The `use` declarations of a module, those inside its functions as well.
struct Uses(Vec<Leaf>);

impl<'a> Visit<'a> for Uses {
    fn visit_item_use(&mut self, item: &'a syn::ItemUse) {
        self.0.extend(leaves(item));
    }

    fn visit_item_mod(&mut self, _: &'a syn::ItemMod) {}
}

/// The name that an item defines.
fn name(item: &Item) -> Option<String> {
    let name = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::TraitAlias(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(name.to_string())
}
