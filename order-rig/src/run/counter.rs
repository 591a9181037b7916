use std::{collections::HashSet, process::ExitCode, sync::Arc, time::Duration};

use anyhow::Context;
use saga_core::{
    Runtime, Saga,
    engine::SagaAdmin,
    store::{SagaFilter, Status, Store},
};

use super::{
    Summary,
    drive::{Drive, Driven, Job},
    input::Input,
    progress::Progress,
};
use crate::{
    cli::OrdersArgs,
    interrupt::{INTERRUPTED, interrupted},
    orders::{Intake, Numbered, Order, Refusal, Source, read_orders},
    outside::{self, Outside},
    patience::wait_for,
    place::{Place, without_password},
    print::{print, say},
    shop,
};

/// Something needs a person.
const NEEDS_PERSON: u8 = 1;

/// Orders were left out, since it was too late to start them.
const TOO_LATE: u8 = 3;

/// Where orders come in: the store, the shop's tables, and what is to be run.
pub(crate) struct Counter<S> {
    store: S,
    patience: Duration,
    orders: Source,
    intake: Intake,
    refused_products: usize,
    unfinished: Vec<String>,
}

impl<S: Store<Conn: saga_sql::SqlConn> + Clone> Counter<S> {
    /// Opens the shop, puts the products on the shelves and looks at the orders. A database that is away is waited for,
    /// here and while the orders run, for `patience`.
    pub(crate) async fn open(place: &impl Place<Store = S>, input: Input, patience: Duration) -> anyhow::Result<Self> {
        let (store, catalogue, unfinished) = wait_for("the database", patience, async || {
            let store = place.open().await?;
            let mut shop = place.open_shop().await?;
            shop::migrate(&mut shop).await?;
            shop::load_products(&mut shop, &input.products).await?;
            let unfinished = unfinished(&store).await?;
            Ok((store, shop::catalogue(&mut shop).await?, unfinished))
        })
        .await?;
        say(format_args!("the store is {}", place.name()));
        let intake = read_orders(&input.orders, &input.order_lines, &catalogue);
        input.refused_products.iter().chain(&intake.refused).for_each(say);
        if !unfinished.is_empty() {
            say(format_args!("going on with {} orders that were under way", unfinished.len()));
        }
        let refused_products = input.refused_products.len();
        Ok(Self { store, patience, orders: input.orders, intake, refused_products, unfinished })
    }

    /// The runtime's store.
    pub(crate) fn store(&self) -> S {
        self.store.clone()
    }

    /// Runs the orders to their end, shuts the runtime down, and prints the summary.
    pub(crate) async fn run(
        self,
        place: &impl Place<Store = S>,
        runtime: &Runtime<S>,
        saga: &Saga<S, Order>,
        args: &OrdersArgs,
        outside: Option<&Outside>,
    ) -> anyhow::Result<ExitCode> {
        let ran = self.run_orders(place, runtime, saga, args, outside).await;
        ran.with_context(|| format!("the run stopped, nothing is lost, go on with: {}", same_command()))
    }

    async fn run_orders(
        self,
        place: &impl Place<Store = S>,
        runtime: &Runtime<S>,
        saga: &Saga<S, Order>,
        args: &OrdersArgs,
        outside: Option<&Outside>,
    ) -> anyhow::Result<ExitCode> {
        let found_unfinished = self.unfinished.len();
        let mut progress = Progress::of(self.intake.orders.len());
        let drive = Drive::new(runtime, saga, args.concurrency.get(), self.patience).until(args.starts_until);
        let (mut summary, orders) = Summary::of(self.intake);
        let driven = drive.run(jobs(orders, self.unfinished), &mut progress, interrupted()).await;
        runtime.shutdown().await;
        let elapsed = progress.finish();
        let driven = driven?;

        for (line, sentence) in &driven.refused {
            say(format_args!("{}", Refusal { file: self.orders.to_string(), line: *line, sentence: sentence.clone() }));
        }
        summary.add(&driven, found_unfinished, elapsed);
        let tally = if let Some(services) = outside {
            wait_for("the services outside", self.patience, async || services.tally().await).await?
        } else {
            say(format_args!("what the services outside did is not counted; give --outside URL to count it"));
            outside::Tally::default()
        };
        let counted = wait_for("the database", self.patience, async || {
            shop::Tally::of(&mut place.open_shop_read_only().await?).await
        });
        summary.count(&counted.await?, &tally);
        if args.json {
            print(serde_json::to_string(&summary)? + "\n")?;
        } else {
            print(&summary)?;
        }
        Ok(exit(&driven, self.refused_products + summary.refused))
    }
}

/// The keys of the sagas that earlier runs have not brought to their end.
async fn unfinished(store: &(impl Store + Clone)) -> anyhow::Result<Vec<String>> {
    let mut keys = Vec::new();
    for status in [Status::Running, Status::Compensating] {
        let filter = SagaFilter { status: Some(status), limit: usize::MAX, ..SagaFilter::default() };
        let sagas = SagaAdmin::new(store.clone()).query().list(filter).await?;
        keys.extend(sagas.into_iter().map(|saga| saga.key.as_str().to_owned()));
    }
    Ok(keys)
}

/// The orders, and before them what earlier runs have left and is not among them.
fn jobs(orders: Vec<Numbered>, unfinished: Vec<String>) -> Vec<Job> {
    let ours: HashSet<&str> = orders.iter().map(|numbered| numbered.order.order_id.as_str()).collect();
    let mut jobs: Vec<Job> =
        unfinished.into_iter().filter(|key| !ours.contains(key.as_str())).map(Job::Earlier).collect();
    jobs.extend(orders.into_iter().map(|order| Job::Order(Arc::new(order))));
    jobs
}

fn exit(driven: &Driven, refused: usize) -> ExitCode {
    if driven.started_again > 0 {
        say(format_args!(
            "the database had lost {} orders, which were started again; to compare with the services outside, run: \
             order-rig verify",
            driven.started_again
        ));
    }
    for key in &driven.lost {
        say(format_args!("the database has lost the saga {key} of an earlier run; run the file with its order again"));
    }
    for stuck in &driven.stuck {
        say(stuck);
    }
    if driven.interrupted {
        say(format_args!("nothing is lost; go on with: {}", same_command()));
        return ExitCode::from(INTERRUPTED);
    }
    if !driven.stuck.is_empty() {
        say(format_args!("look at one of them with: order-rig show KEY"));
    }
    if refused > 0 {
        say(format_args!(
            "refused: {refused}; mend those lines and run the file again, what is known is not run twice"
        ));
    }
    if driven.late > 0 {
        say(format_args!("{} orders were left out, since the time to start them was over", driven.late));
        return ExitCode::from(TOO_LATE);
    }
    let is_well = driven.stuck.is_empty() && driven.lost.is_empty() && refused == 0;
    if is_well { ExitCode::SUCCESS } else { ExitCode::from(NEEDS_PERSON) }
}

/// The command that this program was started with, fit for a shell, without passwords.
fn same_command() -> String {
    let plain =
        |argument: &str| argument.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_./:=,@+".contains(&byte));
    let quoted = std::env::args().skip(1).map(|argument| without_password(&argument)).map(|argument| {
        if !argument.is_empty() && plain(&argument) {
            argument
        } else {
            format!("'{}'", argument.replace('\'', r"'\''"))
        }
    });
    std::iter::once("order-rig".to_owned()).chain(quoted).collect::<Vec<_>>().join(" ")
}
