//! Only the decider of the engine calls the machine to decide.

use std::collections::BTreeSet;

use crate::tidy::finding::Finding;
use crate::tidy::workspace::modules::{Crates, Import, imports};

pub(crate) const RULE: &str = "machine_calls";

const CORE: &str = "saga-core/src/";
const ENGINE: &str = "saga-core/src/engine/";
const DECIDE: &str = "saga-core/src/engine/decide/";
const MACHINE: &str = "saga-core/src/machine/";

/// The functions of the machine that decide. Its types, and questions about a state, are for everybody.
const DECISIONS: [&str; 7] =
    ["after_attempt", "apply", "at_deadline", "event_of_answer", "start", "tombstone", "undo_before_command"];

/// One finding for each decision that is taken from the machine elsewhere.
pub(crate) fn are_in_the_decider(crates: &Crates<'_>) -> Vec<Finding> {
    let Some(core) = crates.0.iter().find(|one| one.folder == CORE) else { return Vec::new() };
    let is_outside = |import: &&Import<'_>| {
        import.from.starts_with(ENGINE)
            && !import.from.starts_with(DECIDE)
            && import.to.starts_with(MACHINE)
            && DECISIONS.contains(&import.item.as_str())
    };
    let finding = |import: &Import<'_>| {
        let message = format!("`{}` of the machine is called here; only {DECIDE} decides", import.item);
        Finding::of_rule(RULE, import.from, import.line, import.item.clone(), message)
    };
    let mut findings: Vec<Finding> = imports(core).iter().filter(is_outside).map(finding).collect();
    // A function that is imported and then called is found twice: once for each of the two lines.
    let mut seen = BTreeSet::new();
    findings.retain(|finding| seen.insert((finding.path.clone(), finding.message.clone())));
    findings
}

#[cfg(test)]
mod tests {
    use super::are_in_the_decider;
    use crate::tidy::workspace::modules::Crates;
    use crate::tidy::workspace::tree::Tree;

    fn told(admin: &str) -> Vec<String> {
        let tree = Tree::of(&[
            ("saga-core/src/lib.rs", "mod engine;\nmod machine;\n"),
            ("saga-core/src/machine/mod.rs", "mod ops;\npub use self::ops::{Event, apply};\n"),
            ("saga-core/src/machine/ops.rs", "pub struct Event;\npub fn apply() {}\n"),
            ("saga-core/src/engine/mod.rs", "mod admin;\nmod decide;\n"),
            ("saga-core/src/engine/admin/mod.rs", admin),
            ("saga-core/src/engine/decide/mod.rs", "pub fn decide() { crate::machine::apply() }\n"),
        ]);
        are_in_the_decider(&Crates::of(&tree)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_call_outside_the_decider_is_found() {
        for text in ["use crate::machine::apply;\nfn a() { apply() }\n", "fn a() { crate::machine::apply() }\n"] {
            let found = told(text);
            assert!(found.len() == 1 && found[0].contains("machine_calls: `apply`"), "{text}: {found:?}");
        }
    }

    #[test]
    fn the_decider_and_types_pass() {
        assert_eq!(told("use crate::machine::Event;\npub struct Held(Event);\n"), [""; 0]);
    }
}
