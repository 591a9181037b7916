use std::process::ExitCode;

use saga_core::{
    engine::Inspector,
    store::{SagaFilter, Status},
};
use saga_sqlite::SqliteStore;

use super::{Audit, Books, Finding, audit};
use crate::{cli::VerifyArgs, place::Place, print::print};

/// Something is wrong.
const WRONG: u8 = 1;

/// Audits the shop, and prints all that is wrong.
///
/// # Errors
///
/// A sentence, when the books cannot be read.
///
/// # Cancel safety
///
/// It may be dropped at any time; it only reads.
pub async fn verify(args: &VerifyArgs) -> anyhow::Result<ExitCode> {
    let place = Place::parse(&args.store.store)?;
    let inspector = Inspector::new(place.look_at_store().await?);
    let (shop, outside) = (Place::read_only(place.store())?, Place::read_only(&place.outside())?);
    let mut audit = audit(&Books::read(&shop, &outside)?);
    ask_the_engine(&inspector, &mut audit).await?;
    if args.json {
        print(serde_json::to_string(&audit)? + "\n")?;
    } else {
        for Finding { subject, wrong } in &audit.findings {
            print(format_args!("{subject}: {wrong}\n"))?;
        }
        let Audit { products, orders, confirmed, cancelled, findings } = &audit;
        let findings = findings.len();
        print(format_args!(
            "{orders} orders ({confirmed} confirmed, {cancelled} cancelled), {products} products: {findings} findings\n"
        ))?;
    }
    Ok(if audit.findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(WRONG) })
}

/// The one question to the engine: is a saga unfinished or stuck?
async fn ask_the_engine(inspector: &Inspector<SqliteStore>, audit: &mut Audit) -> anyhow::Result<()> {
    for status in Status::ALL.into_iter().filter(|status| !status.is_ended()) {
        let filter = SagaFilter { status: Some(status), limit: usize::MAX, ..SagaFilter::default() };
        for saga in inspector.list(filter).await? {
            audit.find(saga.key.as_str(), format!("its saga is {status}"));
        }
    }
    Ok(())
}
