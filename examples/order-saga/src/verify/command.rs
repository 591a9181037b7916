use std::process::ExitCode;

use saga_core::{
    engine::Inspector,
    store::{SagaFilter, Status, Store},
};

use super::{Audit, Books, Finding, audit};
use crate::{
    cli::VerifyArgs,
    place::{Place, read_book},
    print::print,
};

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
pub async fn verify(place: &impl Place, args: &VerifyArgs) -> anyhow::Result<ExitCode> {
    let inspector = Inspector::new(place.look_at_store().await?);
    let (mut shop, mut outside) = (place.look_at_shop().await?, read_book(&place.outside())?);
    let mut audit = audit(&Books::read(&mut shop, &mut outside).await?);
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
async fn ask_the_engine(inspector: &Inspector<impl Store>, audit: &mut Audit) -> anyhow::Result<()> {
    for status in Status::ALL.into_iter().filter(|status| !status.is_ended()) {
        let filter = SagaFilter { status: Some(status), limit: usize::MAX, ..SagaFilter::default() };
        for saga in inspector.list(filter).await? {
            audit.find(saga.key.as_str(), format!("its saga is {status}"));
        }
    }
    Ok(())
}
