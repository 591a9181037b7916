//! What the attributes accept: each file under `tests/ui/<topic>/pass` is a module here, and its tests run.
//!
//! They are compiled with the lints of the workspace, so that what is generated is known to cause no warning.

#![expect(clippy::expect_used, reason = "a test that cannot go on fails")]
#![expect(clippy::unused_async, reason = "a step is `async`, whatever it does")]

use std::path::Path;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use saga_core::memory::{MemoryConn, MemoryStore};

macro_rules! cases {
    ($(#[path = $path:literal] mod $name:ident;)+) => {
        $(#[path = $path] mod $name;)+
        const CASES: &[&str] = &[$($path),+];
    };
}

cases! {
    #[path = "ui/batch/pass/steps.rs"] mod batch_steps;
    #[path = "ui/builder/pass/branches.rs"] mod builder_branches;
    #[path = "ui/builder/pass/choices.rs"] mod builder_choices;
    #[path = "ui/builder/pass/lists.rs"] mod builder_lists;
    #[path = "ui/builder/pass/mappings.rs"] mod builder_mappings;
    #[path = "ui/builder/pass/migrations.rs"] mod builder_migrations;
    #[path = "ui/builder/pass/waits.rs"] mod builder_waits;
    #[path = "ui/compensation/pass/leaves_output_out.rs"] mod compensation_leaves_output_out;
    #[path = "ui/compensation/pass/visibility.rs"] mod compensation_visibility;
    #[path = "ui/contract/pass/both_sides.rs"] mod contract_both_sides;
    #[path = "ui/generics/pass/connection_trait.rs"] mod generics_connection_trait;
    #[path = "ui/generics/pass/impl_trait_connection.rs"] mod generics_impl_trait_connection;
    #[path = "ui/generics/pass/store_trait.rs"] mod generics_store_trait;
    #[path = "ui/generics/pass/type_parameters.rs"] mod generics_type_parameters;
    #[path = "ui/options/pass/all.rs"] mod options_all;
    #[path = "ui/options/pass/lock.rs"] mod options_lock;
    #[path = "ui/resolution/pass/visibility.rs"] mod resolution_visibility;
    #[path = "ui/sample/pass/order.rs"] mod sample_order;
    #[path = "ui/step/pass/conditions.rs"] mod step_conditions;
    #[path = "ui/step/pass/events.rs"] mod step_events;
    #[path = "ui/step/pass/inside_function.rs"] mod step_inside_function;
    #[path = "ui/step/pass/made_by_macro.rs"] mod step_made_by_macro;
    #[path = "ui/step/pass/other_module.rs"] mod step_other_module;
    #[path = "ui/step/pass/parameters.rs"] mod step_parameters;
    #[path = "ui/types/pass/option_output.rs"] mod types_option_output;
    #[path = "ui/types/pass/own_error.rs"] mod types_own_error;
    #[path = "ui/types/pass/static_lifetime.rs"] mod types_static_lifetime;
}

#[test]
fn each_file_is_a_module_here() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let topics = std::fs::read_dir(tests.join("ui")).unwrap().map(|topic| topic.unwrap().path().join("pass"));
    let files = topics.filter(|cases| cases.exists()).flat_map(|cases| std::fs::read_dir(cases).unwrap());
    let mut found: Vec<String> =
        files.map(|file| file.unwrap().path().strip_prefix(&tests).unwrap().to_str().unwrap().to_owned()).collect();
    found.sort();
    assert_eq!(found, CASES);
}

/// What a future gives that never has to wait.
fn ready<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("the future waits"),
    }
}

/// Runs the code on a connection of its own.
fn connection(run: impl FnOnce(&mut MemoryConn)) {
    run(MemoryStore::new().transaction().conn());
}
