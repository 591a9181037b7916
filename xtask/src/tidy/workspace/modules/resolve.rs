//! What a path means: the item behind it, through imports and re-exports.
//!
//! It knows the names that stand in the text. An item that a macro makes is taken to be where its path leads.

use super::crates::Crate;
use super::module::ModuleId;

/// An item of a crate, by the module that defines it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ItemId {
    pub(crate) module: ModuleId,
    pub(crate) name: String,
}

/// What a path leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Definition {
    Module(ModuleId),
    Item(ItemId),
}

/// The names that are being looked up, since re-exports can form a ring.
type Visited = Vec<(ModuleId, String, bool)>;

impl Crate<'_> {
    /// The definitions behind a path that stands in the module `from`: none for another crate's, several where a name is a
    /// module and a function as well. Of `Type::method` it is the type.
    pub(crate) fn resolve(&self, from: ModuleId, path: &[String]) -> Vec<Definition> {
        self.resolve_path(from, path, &mut Visited::new())
    }

    /// The one item behind a path, if it is one of this crate.
    pub(crate) fn item(&self, from: ModuleId, path: &[String]) -> Option<ItemId> {
        self.resolve(from, path).into_iter().find_map(|definition| match definition {
            Definition::Item(item) => Some(item),
            Definition::Module(_) => None,
        })
    }

    fn resolve_path(&self, from: ModuleId, path: &[String], visited: &mut Visited) -> Vec<Definition> {
        let Some((mut module, mut at)) = self.start(from, path, visited) else { return Vec::new() };
        // Each name but the last is a module's, or a type's with something of it behind.
        while at < path.len() {
            let is_last = at + 1 == path.len();
            let found = self.named(module, &path[at], is_last, visited);
            if is_last {
                return self.or_made_by_macro(found, module, &path[at]);
            }
            match found.first() {
                Some(Definition::Module(inner)) => module = *inner,
                Some(Definition::Item(_)) => return found,
                None => return self.or_made_by_macro(found, module, &path[at]),
            }
            at += 1;
        }
        vec![Definition::Module(module)]
    }

    /// The module where the path begins, and how many of its names say so.
    fn start(&self, from: ModuleId, path: &[String], visited: &mut Visited) -> Option<(ModuleId, usize)> {
        let first = path.first()?.as_str();
        match first {
            "crate" => Some((self.root(from), 1)),
            "self" | "super" => {
                let ups = path.iter().position(|name| !matches!(name.as_str(), "self" | "super")).unwrap_or(path.len());
                let mut climbed = path[..ups].iter().filter(|name| *name == "super");
                let module = climbed.try_fold(from, |module, _| self.modules[module].parent)?;
                Some((module, ups))
            }
            _ if !self.named(from, first, false, visited).is_empty() => Some((from, 0)),
            _ => self.library.as_ref().filter(|(name, _)| name == first).map(|(_, root)| (*root, 1)),
        }
    }

    /// What the name means in the module. Before another name, only a module or a type counts, a module first.
    fn named(&self, module: ModuleId, name: &str, is_last: bool, visited: &mut Visited) -> Vec<Definition> {
        let place = (module, name.to_owned(), is_last);
        if visited.contains(&place) {
            return Vec::new();
        }
        visited.push(place);
        let own = &self.modules[module];
        let mut found = Vec::new();
        found.extend(own.children.get(name).map(|child| Definition::Module(*child)));
        if found.is_empty() || is_last {
            if own.names.contains(name) {
                found.push(Definition::Item(ItemId { module, name: name.to_owned() }));
            }
            for (_, path) in own.imported.iter().filter(|(imported, _)| imported == name) {
                found.extend(self.resolve_import(module, name, path, visited));
            }
        }
        if found.is_empty() {
            for path in &own.globs {
                for definition in self.resolve_path(module, path, visited) {
                    if let Definition::Module(inner) = definition {
                        found.extend(self.named(inner, name, is_last, visited));
                    }
                }
            }
        }
        visited.pop();
        found.dedup();
        found
    }

    /// What an import stands for. `use tokio::time` in a module that has no `tokio` of its own is another crate's.
    fn resolve_import(&self, module: ModuleId, name: &str, path: &[String], visited: &mut Visited) -> Vec<Definition> {
        let is_of_itself = path.len() == 1 && path[0] == name;
        if is_of_itself { Vec::new() } else { self.resolve_path(module, path, visited) }
    }

    /// A name that no item in the text has, in a module that is more than a list.
    fn or_made_by_macro(&self, found: Vec<Definition>, module: ModuleId, name: &str) -> Vec<Definition> {
        if found.is_empty() && self.modules[module].defines {
            return vec![Definition::Item(ItemId { module, name: name.to_owned() })];
        }
        found
    }

    fn root(&self, mut module: ModuleId) -> ModuleId {
        while let Some(parent) = self.modules[module].parent {
            module = parent;
        }
        module
    }
}

#[cfg(test)]
mod tests {
    use super::Definition;
    use crate::tidy::workspace::modules::Crates;
    use crate::tidy::workspace::tree::Tree;

    const FILES: [(&str, &str); 6] = [
        ("a/src/lib.rs", "mod engine;\nmod store;\npub use store::Row;\n"),
        (
            "a/src/store/mod.rs",
            "mod rows;\npub(crate) mod check;\npub use self::rows::{Row as Line, *};\npub use check::check;\n",
        ),
        ("a/src/store/rows.rs", "pub struct Row;\nid!(RowId);\n"),
        ("a/src/store/check.rs", "pub fn check() {}\n"),
        ("a/src/engine/mod.rs", "mod queue;\n"),
        (
            "a/src/engine/queue.rs",
            "use tokio::time;\nuse crate::store::{self, check};\nenum Kind { A }\nmod inner {\n  use super::Kind;\n}\n",
        ),
    ];

    /// Where a path leads that stands in the queue, as `file:name`.
    fn found(path: &str) -> Vec<String> {
        let tree = Tree::of(&FILES);
        let crates = Crates::of(&tree);
        let one = &crates.0[0];
        let from = one.modules.iter().position(|module| module.file.ends_with("queue.rs")).expect("there is a queue");
        let path: Vec<String> = path.split("::").map(str::to_owned).collect();
        let name = |definition| match definition {
            Definition::Module(module) => one.modules[module].file.to_owned(),
            Definition::Item(item) => format!("{}:{}", one.modules[item.module].file, item.name),
        };
        one.resolve(from, &path).into_iter().map(name).collect()
    }

    #[test]
    fn re_exports_are_followed_to_the_item() {
        for path in ["crate::Row", "crate::store::Row", "crate::store::Line", "super::super::store::Row", "a::Row"] {
            assert_eq!(found(path), ["a/src/store/rows.rs:Row"], "{path}");
        }
        assert_eq!(found("store::Row::new"), ["a/src/store/rows.rs:Row"]);
        assert_eq!(found("Kind::A"), ["a/src/engine/queue.rs:Kind"]);
        assert_eq!(found("self::inner::Kind"), ["a/src/engine/queue.rs:Kind"]);
    }

    #[test]
    fn a_name_can_be_a_module_and_a_function() {
        let both = ["a/src/store/check.rs", "a/src/store/check.rs:check"];
        assert_eq!(found("crate::store::check"), both);
        assert_eq!(found("check"), both);
        assert_eq!(found("check::check"), both[1..]);
    }

    #[test]
    fn an_item_of_a_macro_is_where_its_path_leads() {
        assert_eq!(found("crate::store::rows::RowId"), ["a/src/store/rows.rs:RowId"]);
    }

    #[test]
    fn other_crates_lead_nowhere() {
        for path in ["tokio::spawn", "time::sleep", "serde::Serialize", "Vec", "crate::store::missing"] {
            assert_eq!(found(path), [""; 0], "{path}");
        }
    }
}
