//! Lists the orders of an earlier run or of another process, or shows one of them.

use std::time::Duration;

use anyhow::bail;
use clap::Subcommand;
use saga_core::engine::{SagaAdmin, SagaQuery, TimelineStatus};
use saga_core::store::{Status, Store};

use crate::report::line;

/// How many orders are read at a time.
const PAGE: usize = 500;

/// What to print.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Look {
    /// Lists the orders with their state and their latest entry.
    List,
    /// Shows the timeline of one order, over all services.
    Show {
        /// The order.
        key: String,
    },
}

impl Look {
    /// Prints it from the store of the service that follows the orders. Returns whether the order exists.
    ///
    /// # Errors
    /// When the store cannot be read.
    ///
    /// # Cancel safety
    /// It only reads.
    pub(crate) async fn at<S: Store>(&self, store: S) -> anyhow::Result<bool> {
        let inspector = SagaAdmin::new(store).query();
        match self {
            Self::List => list(&inspector).await.map(|()| true),
            Self::Show { key } => show(&inspector, key).await,
        }
    }
}

async fn list<S: Store>(inspector: &SagaQuery<S>) -> anyhow::Result<()> {
    let (mut after, mut counts) = (None, Status::ALL.map(|status| (status, 0_usize)));
    loop {
        let page = inspector.timelines(after, PAGE).await?;
        for timeline in &page {
            let last = timeline.entries.last().map(|entry| line(&entry.what)).unwrap_or_default();
            println!("{:<20} {:<12} {last}", timeline.key.as_str(), timeline.status.as_str());
            counts.iter_mut().filter(|(status, _)| *status == timeline.status).for_each(|(_, count)| *count += 1);
        }
        after = page.last().map(|timeline| timeline.id);
        if page.len() < PAGE {
            break;
        }
    }
    let counted = counts.iter().filter(|(_, count)| *count > 0);
    let counted: Vec<String> = counted.map(|(status, count)| format!("{count} {status}")).collect();
    println!("{}", if counted.is_empty() { "no orders".to_owned() } else { counted.join(", ") });
    Ok(())
}

async fn show<S: Store>(inspector: &SagaQuery<S>, key: &str) -> anyhow::Result<bool> {
    let Some(timeline) = inspector.timeline(key).await? else { bail!("nobody has heard of the order {key}") };
    let TimelineStatus { status, entries, is_cut, .. } = &timeline;
    println!("{key} is {status}");
    let begun = entries.first().map_or(0, |entry| entry.at.0);
    for entry in entries {
        let after = Duration::from_micros((entry.at.0 - begun).unsigned_abs());
        println!("  {:>10.3} s  {}", after.as_secs_f64(), line(&entry.what));
    }
    if *is_cut {
        println!("  more happened than is kept");
    }
    Ok(true)
}
