//! The tasks of this workspace, run as `cargo xtask <task>`.

mod api;
mod interrupt;
mod phases;
mod tasks;
mod tidy;
mod workspace;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

/// The tasks of this workspace.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Installs what is missing, starts private servers and runs every test, side by side, and 5,000 simulated schedules.
    Test(tasks::Test),
    /// Private servers for tests that are run by hand: PostgreSQL, PgBouncer and RabbitMQ.
    Services {
        #[command(subcommand)]
        task: tasks::ServicesTask,
    },
    /// The example on private servers that it starts: `demo services`.
    Demo {
        #[command(subcommand)]
        demo: tasks::Demo,
    },
    /// Formatting, clippy and rustdoc with warnings denied, the public API as it is listed, the guide, and tidy.
    Check(tasks::Check),
    /// The rules of the house that a program can check; known offenders are listed in xtask/tidy-debt.txt.
    Tidy(tasks::Tidy),
    /// Lists the public items of the library crates in docs/api; --check compares with what is listed.
    Api(tasks::Api),
    /// Builds the guide with mdBook, which it installs into `target/tools` first.
    Book,
    /// Writes `docs/guarantees.md`: the guarantees and the tests that name them.
    Guarantees,
    /// Seeded schedules of the whole engine with faults: --seeds N --seed-from S, --seeds N --fresh from a seed that it draws
    /// and prints, or --seed X to replay one.
    #[command(disable_help_flag = true)]
    Sim {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Orders through three services while replicas and servers are killed: --minutes N --seed S [--no-bar] [--json];
    /// and reservations: `chaos reservations [--rounds N] [--seed S] [--holds redis]`.
    #[command(disable_help_flag = true)]
    Chaos {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Benchmarks with their floors in the same run: all, or one by its name: `bench postgres [--peers] [--json]`; and of
    /// two revisions beside each other: `bench --beside REVISION [--times N] remote`.
    #[command(disable_help_flag = true)]
    Bench(tasks::Bench),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().task {
        Task::Test(options) => tasks::test(&options),
        Task::Services { task } => tasks::services(task),
        Task::Demo { demo } => tasks::demo(demo),
        Task::Check(check) => tasks::check(&check, &task_names()),
        Task::Tidy(tidy) => tasks::tidy(&tidy, &task_names()),
        Task::Api(api) => tasks::api(&api).map(drop),
        Task::Book => tasks::book().map(drop),
        Task::Guarantees => tasks::guarantees(),
        Task::Sim { arguments } => tasks::sim(&arguments),
        Task::Chaos { arguments } => tasks::chaos(&arguments),
        Task::Bench(bench) => tasks::bench(&bench),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            interrupt::exit_code(&error)
        }
    }
}

fn task_names() -> Vec<String> {
    Arguments::command().get_subcommands().map(|task| task.get_name().to_owned()).collect()
}
