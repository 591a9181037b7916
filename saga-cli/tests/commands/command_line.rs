//! What the command line accepts, and what its help says.

use clap::Parser as _;

use crate::shop::Cli;

#[test]
fn what_is_misspelt_is_refused() {
    for wrong in [
        &["retry", "dear-1"][..],
        &["retry", "dear-1", "--reason", "why", "--input", "{"],
        &["skip", "dear-1", "--reason", "why", "--outptu", "1"],
        &["force", "dear-1", "--reason", "why"],
        &["restart", "dear-1", "--reason", "why", "--new-key", "new"],
        &["bulk", "plan", "pause"],
        &["pause"],
        &["resume", "dear-1"],
        &["cancel", "dear-1", "--reasn", "why"],
        &["pause", "dear-1", "dear-2", "--reason", "why"],
        &["force", "dear-1", "--reason", "why", "--as", "stuck"],
        &["cancel", "--reason", "why"],
        &["bulk", "plan", "explode", "--out", "plan.json"],
        &["bulk", "run", "plan.json", "--reason", "why", "--per-second", "0"],
        &["audit", "--limit", "many"],
        &["list", "--status", "happy"],
        &["dead-letters", "discard", "17"],
        &["list", "--tenant", ""],
        &["retention", "apply", "create-order", "--tenant", "acme"],
        &["retention", "show", "--tenant", "acme"],
    ] {
        assert!(Cli::try_parse_from([&["shop"], wrong].concat()).is_err(), "{wrong:?}");
    }
}

#[test]
fn each_command_has_a_help_page() {
    let help = |args: &[&str]| {
        let asked = Cli::try_parse_from([&["shop"], args, &["--help"]].concat());
        asked.err().expect("a page instead of a command").to_string()
    };
    for command in
        [&["retry"][..], &["skip"], &["force"], &["restart"], &["bulk", "plan"], &["bulk", "run"], &["audit"]]
    {
        assert!(help(command).contains("Usage: shop "), "{command:?}");
    }
    for command in ["pause", "resume", "cancel"] {
        let page = help(&[command]);
        assert!(page.contains("--reason <TEXT>") && page.contains("--by <NAME>"), "{page}");
    }
}

#[test]
fn the_help_tells_which_commands_are_of_one_tenant() {
    let help = |args: &[&str]| {
        let asked = Cli::try_parse_from([&["shop"], args, &["--help"]].concat());
        asked.err().expect("a page instead of a command").to_string()
    };
    for command in [&["list"][..], &["bulk", "run"], &["outbox", "list"], &["retention", "purge"]] {
        assert!(help(command).contains("--tenant <NAME>"), "{command:?}");
    }
    for command in ["show", "apply"] {
        let page = help(&["retention", command]);
        assert!(page.contains("of all tenants") && !page.contains("--tenant"), "{page}");
    }
}

#[test]
fn an_invalid_tenant_is_an_error_that_says_why() {
    let error = Cli::try_parse_from(["shop", "list", "--tenant", "a b"]).err().expect("an error").to_string();
    assert!(error.contains("the tenant \"a b\" has a character at byte 1 that is not allowed"), "{error}");
}
