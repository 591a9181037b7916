use std::process::ExitCode;

use super::{
    Audit, Books, Finding, audit, check_first_stock, compare,
    rest::{Looked, unrest},
};
use crate::{
    cli::VerifyArgs,
    orders::{Source, read_products},
    place::{Place, read_book},
    print::{print, say},
};

/// Something is wrong.
const WRONG: u8 = 1;

/// Audits the shop and whether the stores are at rest, and prints all that is wrong.
pub async fn verify(place: &impl Place, args: &VerifyArgs) -> anyhow::Result<ExitCode> {
    let stores = Looked::open_all(&args.stores).await?;
    let (mut shop, mut outside) = (place.open_shop_read_only().await?, read_book(&place.outside())?);
    let unrest = unrest(&stores, args.within).await?;
    let books = Books::read(&mut shop, &mut outside).await?;
    let mut audit = audit(&books);
    if let Some(first) = stores.first() {
        compare(&mut audit, &first.order_sagas().await?, &books);
    }
    if let Some(products) = &args.products {
        let source = Source::file_or_stdin(products);
        let (products, refused) = read_products(&source, &source.read()?);
        refused.iter().for_each(say);
        check_first_stock(&mut audit, &books, &products);
    }
    audit.findings.extend(unrest);
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
