//! The files of a crate can be read one after the other: no file imports, by way of others, itself.

use std::fmt::Write as _;

use crate::tidy::finding::Finding;
use crate::tidy::workspace::modules::{Crates, Graph, imports};

pub(crate) const RULE: &str = "import_circle";

/// One finding for each file of a circle, with the shortest way back to it.
pub(crate) fn no_file_imports_itself(crates: &Crates<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for one in &crates.0 {
        let graph = Graph::of(imports(one), |file| Some(file.to_owned()));
        let circles = graph.components().into_iter().filter(|component| component.len() > 1);
        for circle in circles {
            findings.extend(circle.iter().map(|file| finding(&graph, file, circle.len(), &one.folder)));
        }
    }
    findings
}

fn finding(graph: &Graph, file: &str, size: usize, folder: &str) -> Finding {
    let way = graph.shortest_circle(file);
    let mut line = 1;
    let mut chain = String::new();
    for (at, from) in way.iter().enumerate() {
        let to = way.get(at + 1).unwrap_or(&file);
        let edge = graph.imports_of(from).find(|(name, _)| name == to).and_then(|(_, edges)| edges.first());
        if let Some(edge) = edge {
            line = if at == 0 { edge.line } else { line };
            let place = if at == 0 { String::new() } else { format!(":{}", edge.line) };
            let _ = write!(chain, "{}{place} -({})-> ", short(from, folder), edge.item);
        }
    }
    let message = format!(
        "in an import circle of {size} files: {chain}{}; move what both ends need into a file below them",
        short(file, folder)
    );
    Finding::of_rule(RULE, file, line, "circle", message)
}

fn short<'a>(file: &'a str, folder: &str) -> &'a str {
    file.strip_prefix(folder).unwrap_or(file)
}

#[cfg(test)]
mod tests {
    use super::no_file_imports_itself;
    use crate::tidy::workspace::modules::Crates;
    use crate::tidy::workspace::tree::Tree;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let tree = Tree::of(files);
        no_file_imports_itself(&Crates::of(&tree)).iter().map(ToString::to_string).collect()
    }

    fn paths(files: &[(&str, &str)]) -> Vec<String> {
        found(files).iter().filter_map(|text| text.split(':').nth(1)).map(|path| path.trim().to_owned()).collect()
    }

    const LIB: (&str, &str) = ("a/src/lib.rs", "mod b;\nmod c;\nmod d;\n");

    #[test]
    fn a_circle_is_found_and_told_as_a_chain() {
        let files = [
            LIB,
            ("a/src/b.rs", "\nuse crate::c::C;\npub(crate) struct B;\n"),
            ("a/src/c.rs", "pub(crate) struct C;\nfn f() { super::d::d() }\n"),
            ("a/src/d.rs", "pub(crate) fn d() { let _: crate::b::B; }\n"),
        ];
        let told = found(&files);
        assert_eq!(told.len(), 3);
        let chain = "error: a/src/b.rs:2: import_circle: in an import circle of 3 files: b.rs -(C)-> c.rs:2 -(d)-> \
                     d.rs:1 -(B)-> b.rs; move";
        assert!(told[0].starts_with(chain), "{}", told[0]);
    }

    #[test]
    fn a_circle_through_a_list_of_modules_is_found() {
        let files = [
            ("a/src/lib.rs", "mod b;\n"),
            ("a/src/b/mod.rs", "mod c;\nmod d;\npub(crate) use self::{c::C, d::D};\n"),
            ("a/src/b/c.rs", "use super::D;\npub(crate) struct C(D);\n"),
            ("a/src/b/d.rs", "use crate::b::{self};\npub(crate) struct D;\nfn f(_: b::C) {}\n"),
        ];
        assert_eq!(paths(&files), ["a/src/b/c.rs", "a/src/b/d.rs"]);
    }

    #[test]
    fn a_circle_in_macros_is_found() {
        let files = [
            LIB,
            ("a/src/b.rs", "macro_rules! b { () => { $crate::c::c() } }\npub(crate) use b;\n"),
            ("a/src/c.rs", "pub(crate) fn c() { crate::b::b!() }\n"),
        ];
        assert_eq!(paths(&files), ["a/src/b.rs", "a/src/c.rs"]);
    }

    #[test]
    fn no_circle_is_none() {
        let list = ("a/src/b/mod.rs", "mod c;\nmod d;\npub(crate) use self::{c::C, d::D};\n");
        let c = ("a/src/b/c.rs", "use super::D;\npub(crate) struct C(D);\n");
        assert_eq!(found(&[("a/src/lib.rs", "mod b;\n"), list, c, ("a/src/b/d.rs", "pub struct D;\n")]), [""; 0]);
        let only_in_tests = "pub(crate) struct C;\n#[cfg(test)]\nmod tests { use crate::b::B; }\n";
        let b = ("a/src/b.rs", "use crate::c::C;\npub(crate) struct B;\n");
        assert_eq!(found(&[LIB, b, ("a/src/c.rs", only_in_tests)]), [""; 0]);
        let handed_on = ("a/src/c.rs", "pub(crate) use crate::b::B;\npub(crate) struct C;\n");
        assert_eq!(found(&[LIB, b, handed_on]), [""; 0]);
        let same_names = ("a/src/c.rs", "pub(crate) struct C;\nfn f(b: u8) -> u8 { tokio::b::B; b }\n");
        assert_eq!(found(&[LIB, b, same_names]), [""; 0]);
    }
}
