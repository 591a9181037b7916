//! The methods of a type stand in the folder that defines it, so that the folder is all there is to read about it.

use crate::tidy::finding::Finding;
use crate::tidy::workspace::impls::inherent_impls;
use crate::tidy::workspace::modules::{Crate, Crates};

pub(crate) const RULE: &str = "impl_home";

/// One finding for each inherent `impl` block outside of its type's folder.
pub(crate) fn is_the_folder_of_the_type(crates: &Crates<'_>) -> Vec<Finding> {
    crates.0.iter().flat_map(check).collect()
}

fn check(one: &Crate<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for block in inherent_impls(one) {
        let home = folder(one, one.modules[block.of.module].file);
        let here = folder(one, block.file);
        if here != home {
            let name = &block.of.name;
            let message = format!(
                "methods of `{name}` in {here}, and it is defined in {home}: move them there, or give them to a \
                 component of this folder that owns or borrows what they need"
            );
            findings.push(Finding::of_rule(RULE, block.file, block.line, name, message));
        }
    }
    findings
}

/// The folder that a file belongs to: of `key.rs` beside a folder `key/` it is that folder.
fn folder<'a>(one: &Crate<'_>, file: &'a str) -> &'a str {
    let stem = file.strip_suffix(".rs").unwrap_or(file);
    let mut inside = one.modules.iter().filter_map(|module| module.file.strip_prefix(stem));
    if inside.any(|path| path.starts_with('/')) { stem } else { file.rsplit_once('/').map_or("", |(folder, _)| folder) }
}

#[cfg(test)]
mod tests {
    use super::is_the_folder_of_the_type;
    use crate::tidy::workspace::modules::Crates;
    use crate::tidy::workspace::tree::Tree;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let tree = Tree::of(files);
        let place = |finding: &crate::tidy::finding::Finding| format!("{}:{}", finding.path, finding.line);
        is_the_folder_of_the_type(&Crates::of(&tree)).iter().map(place).collect()
    }

    #[test]
    fn methods_in_another_folder_are_found() {
        let files = [
            ("a/src/lib.rs", "mod b;\nmod c;\nmod d;\n"),
            ("a/src/b/mod.rs", "mod shared;\npub(crate) use self::shared::Shared;\n"),
            ("a/src/b/shared.rs", "pub(crate) struct Shared<S>(S);\n"),
            ("a/src/c/mod.rs", "mod more;\n"),
            ("a/src/c/more.rs", "use crate::b::Shared;\n\nimpl<S: Clone> Shared<S> { fn f(&self) {} }\n"),
            ("a/src/d.rs", "impl crate::b::Shared<u8> {}\n"),
        ];
        assert_eq!(found(&files), ["a/src/c/more.rs:3", "a/src/d.rs:1"]);
    }

    #[test]
    fn methods_at_home_and_of_traits_pass() {
        let files = [
            ("a/src/lib.rs", "mod b;\nmod key;\nmod c;\n"),
            ("a/src/b/mod.rs", "mod shared;\nmod more;\npub(crate) use self::shared::Shared;\n"),
            ("a/src/b/shared.rs", "pub(crate) struct Shared<S>(S);\n"),
            ("a/src/b/more.rs", "impl<S> super::Shared<S> {}\n"),
            ("a/src/key.rs", "mod step;\npub(crate) struct Key;\n"),
            ("a/src/key/step.rs", "impl super::Key {}\n"),
            ("a/src/c.rs", "struct Shared;\nimpl Shared {}\nimpl Clone for crate::b::Shared<u8> {}\nimpl Vec<u8> {}\n"),
        ];
        assert_eq!(found(&files), [""; 0]);
    }
}
