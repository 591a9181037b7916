//! Which file of a crate needs which item of another.

use super::crates::Crate;
use super::import::Import;
use super::references::references;
use super::resolve::Definition;

/// All imports between the files of a crate, in the order of the text.
///
/// An import leads to the file that defines the item, whatever `mod.rs` it is taken from.
pub(crate) fn imports<'a, 'b>(one: &'b Crate<'a>) -> &'b [Import<'a>] {
    one.imports.get_or_init(|| find(one))
}

fn find<'a>(one: &Crate<'a>) -> Vec<Import<'a>> {
    let mut found = Vec::new();
    for (id, module) in one.modules.iter().enumerate() {
        for reference in references(module) {
            for definition in one.resolve(id, &reference.path) {
                let (target, item) = match definition {
                    Definition::Item(item) => (item.module, item.name),
                    // A single name in an expression is a variable's, and a module that only lists is not what is needed.
                    Definition::Module(target) if reference.path.len() > 1 && one.modules[target].defines => {
                        (target, reference.path.last().cloned().unwrap_or_default())
                    }
                    Definition::Module(_) => continue,
                };
                let (from, to) = (module.file, one.modules[target].file);
                if from != to {
                    let is_re_export = reference.is_re_export;
                    found.push(Import { from, line: reference.line, to, item, is_re_export });
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::imports;
    use crate::tidy::workspace::modules::{Crates, Import};
    use crate::tidy::workspace::tree::Tree;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let tree = Tree::of(files);
        let crates = Crates::of(&tree);
        let show = |one: &Import<'_>| format!("{}:{} {} {}", one.from, one.line, one.to, one.item);
        imports(&crates.0[0]).iter().filter(|one| !one.is_re_export).map(show).collect()
    }

    #[test]
    fn an_import_leads_to_the_file_that_defines_the_item() {
        let files = [
            ("a/src/lib.rs", "mod b;\nmod c;\n"),
            ("a/src/b/mod.rs", "mod d;\npub(crate) use self::d::D;\n"),
            ("a/src/b/d.rs", "pub(crate) struct D;\n"),
            ("a/src/c.rs", "use crate::b::D;\nfn f() -> crate::b::D { D }\n"),
        ];
        let to_d = |line| format!("a/src/c.rs:{line} a/src/b/d.rs D");
        assert_eq!(found(&files), [to_d(1), to_d(2), to_d(2)]);
    }

    #[test]
    fn a_list_of_modules_is_not_what_is_imported() {
        let files = [
            ("a/src/lib.rs", "mod b;\nmod c;\n"),
            ("a/src/b/mod.rs", "pub(crate) mod d;\n"),
            ("a/src/b/d.rs", "pub(crate) fn d() {}\n"),
            ("a/src/c.rs", "use crate::b;\nuse crate::b::d;\nfn f(b: u8) -> u8 { b::d::d(); b }\n"),
        ];
        let to_d = |line| format!("a/src/c.rs:{line} a/src/b/d.rs d");
        assert_eq!(found(&files), [to_d(2), to_d(3)]);
    }
}
