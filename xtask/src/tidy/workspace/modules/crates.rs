//! The crates of the workspace and the trees of their modules.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use syn::{Item, ItemMod};

use super::import::Import;
use super::module::{Module, ModuleId};
use crate::tidy::workspace::source::Source;
use crate::tidy::workspace::tree::Tree;

/// A workspace of its own, so none of our crates.
const OTHER_WORKSPACE: &str = "bench/peers/";

/// All crates of the workspace.
pub(crate) struct Crates<'a>(pub(crate) Vec<Crate<'a>>);

/// The files below one `src`: a library, a program, or both.
pub(crate) struct Crate<'a> {
    /// For example `saga-core/src/`.
    pub(crate) folder: String,
    pub(crate) modules: Vec<Module<'a>>,
    /// The places of modules that are compiled for tests only, without their ending: a file, or all that is in a folder.
    test_places: Vec<String>,
    /// What [`imports`](super::imports()) found, once it was asked.
    pub(super) imports: OnceCell<Vec<Import<'a>>>,
    /// The library as the crate's own programs name it.
    pub(super) library: Option<(String, ModuleId)>,
}

impl<'a> Crates<'a> {
    /// Finds each folder `src` with a `lib.rs` or a `main.rs`, and follows its `mod` declarations.
    pub(crate) fn of(tree: &'a Tree) -> Self {
        let sources = tree.sources.iter().filter(|source| !source.is_in(OTHER_WORKSPACE));
        let sources: BTreeMap<&str, &Source> = sources.map(|source| (source.path.as_str(), source)).collect();
        let roots = sources.keys().filter_map(|path| {
            path.strip_suffix("lib.rs")
                .or_else(|| path.strip_suffix("main.rs"))
                .filter(|folder| folder.ends_with("src/"))
        });
        let folders: BTreeSet<&str> = roots.collect();
        Self(folders.into_iter().map(|folder| Crate::of(folder, &sources)).collect())
    }

    /// The crate that a path of a file or folder lies in.
    pub(crate) fn around(&self, path: &str) -> Option<&Crate<'a>> {
        self.0.iter().find(|one| format!("{}/", path.trim_end_matches('/')).starts_with(&one.folder))
    }
}

impl<'a> Crate<'a> {
    fn of(folder: &str, sources: &BTreeMap<&'a str, &'a Source>) -> Self {
        let mut builder = Builder { sources, modules: Vec::new(), test_places: Vec::new() };
        let library = builder.file(&format!("{folder}lib.rs"), folder, None);
        let is_program = |path: &&&str| {
            let inside = path.strip_prefix(folder).unwrap_or_default();
            inside == "main.rs" || inside.strip_prefix("bin/").is_some_and(|name| !name.contains('/'))
        };
        for program in sources.keys().filter(is_program) {
            let name = program.rsplit('/').next().unwrap_or_default();
            builder.file(program, program.strip_suffix(name).unwrap_or_default(), None);
        }
        let name = folder.trim_end_matches("/src/").rsplit('/').next().unwrap_or_default().replace('-', "_");
        Self {
            folder: folder.to_owned(),
            modules: builder.modules,
            test_places: builder.test_places,
            imports: OnceCell::new(),
            library: library.map(|root| (name, root)),
        }
    }

    /// Whether the file is a module for tests only, or of one.
    pub(crate) fn is_for_tests(&self, file: &str) -> bool {
        let mut inside = self.test_places.iter().filter_map(|place| file.strip_prefix(place.as_str()));
        inside.any(|rest| rest == ".rs" || rest.starts_with('/'))
    }
}

struct Builder<'a, 'b> {
    sources: &'b BTreeMap<&'a str, &'a Source>,
    modules: Vec<Module<'a>>,
    test_places: Vec<String>,
}

impl<'a> Builder<'a, '_> {
    /// Adds the module of a file, if there is one; the files of its modules lie in `folder`.
    fn file(&mut self, path: &str, folder: &str, parent: Option<ModuleId>) -> Option<ModuleId> {
        let source = self.sources.get(path)?;
        self.test_places.extend(source.syntax().test_modules.iter().map(|name| format!("{folder}{name}")));
        Some(self.module(&source.path, &source.syntax().items, folder, parent))
    }

    fn module(&mut self, file: &'a str, items: &'a [Item], folder: &str, parent: Option<ModuleId>) -> ModuleId {
        let id = self.modules.len();
        self.modules.push(Module::new(file, items, parent));
        for item in items {
            if let Item::Mod(declaration) = item
                && let Some(child) = self.child(file, folder, declaration, id)
            {
                self.modules[id].children.insert(declaration.ident.to_string(), child);
            }
        }
        id
    }

    fn child(&mut self, file: &'a str, folder: &str, declaration: &'a ItemMod, parent: ModuleId) -> Option<ModuleId> {
        let name = declaration.ident.to_string();
        let own_folder = format!("{folder}{name}/");
        if let Some((_, items)) = &declaration.content {
            return Some(self.module(file, items, &own_folder, Some(parent)));
        }
        self.file(&format!("{folder}{name}.rs"), &own_folder, Some(parent))
            .or_else(|| self.file(&format!("{own_folder}mod.rs"), &own_folder, Some(parent)))
    }
}

#[cfg(test)]
mod tests {
    use super::Crates;
    use crate::tidy::workspace::tree::Tree;

    #[test]
    fn modules_are_followed_into_their_files() {
        let tree = Tree::of(&[
            ("a/src/lib.rs", "mod b;\nmod c { mod d; }\n#[cfg(test)]\nmod e;\n"),
            ("a/src/b/mod.rs", "mod f;\n"),
            ("a/src/b/f.rs", "mod g;\n"),
            ("a/src/b/f/g.rs", ""),
            ("a/src/c/d.rs", ""),
            ("a/src/e.rs", ""),
            ("a/src/never.rs", ""),
            ("a/src/bin/tool.rs", "mod part;\n"),
            ("a/src/bin/part/mod.rs", ""),
            ("a/tests/t.rs", ""),
            ("bench/peers/src/main.rs", ""),
        ]);
        let crates = Crates::of(&tree);
        let folders: Vec<&str> = crates.0.iter().map(|one| one.folder.as_str()).collect();
        assert_eq!(folders, ["a/src/"]);
        let mut files: Vec<&str> = crates.0[0].modules.iter().map(|module| module.file).collect();
        files.sort_unstable();
        files.dedup();
        let declared = ["bin/part/mod.rs", "bin/tool.rs", "b/f.rs", "b/f/g.rs", "b/mod.rs", "c/d.rs", "lib.rs"];
        let mut declared: Vec<String> = declared.iter().map(|file| format!("a/src/{file}")).collect();
        declared.sort_unstable();
        assert_eq!(files, declared);
        assert!(crates.around("a/src/b").is_some() && crates.around("a/src").is_some());
        assert!(crates.around("a/tests").is_none());
        let is_for_tests = |file| crates.0[0].is_for_tests(file);
        assert!(is_for_tests("a/src/e.rs") && is_for_tests("a/src/e/h.rs") && !is_for_tests("a/src/never.rs"));
    }
}
