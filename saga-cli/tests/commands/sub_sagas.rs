//! A saga that is a step of another one, which is a step of a third.

use clap::Parser as _;
use saga_cli::Admin;
use saga_core::{Runtime, Saga, StepError, SubSaga, saga_step};

use crate::shop::{Cli, Shop};

struct Packing;

impl SubSaga for Packing {
    const NAME: &'static str = "packing";
    type Input = u32;
    type Output = ();
}

struct Delivery;

impl SubSaga for Delivery {
    const NAME: &'static str = "delivery";
    type Input = u32;
    type Output = ();
}

#[saga_step(no_compensation)]
async fn print_label(_order: u32) -> Result<(), StepError> {
    Ok(())
}

#[tokio::test]
async fn all_levels_are_shown_each_further_in() {
    let shop = Shop::default();
    let pack = Saga::named("pack").input::<u32>().step::<print_label>().build().expect("it is valid");
    let deliver = Saga::named("deliver").input::<u32>().sub_saga::<Packing>(&pack).build().expect("it is valid");
    let order = Saga::named("order").input::<u32>().sub_saga::<Delivery>(&deliver).build().expect("it is valid");
    let runtime = Runtime::builder(shop.store.clone()).saga(&order).start().await.expect("it starts");
    runtime.start(&order, "TH-1", 1).await.expect("it is new").outcome().await.expect("it ends");
    runtime.shutdown().await;
    let admin = Admin::new("shop", shop).saga(&order);
    let Cli::Admin(command) = Cli::try_parse_from(["shop", "show", "TH-1"]).expect("a command");
    let mut out = Vec::new();
    admin.run(&command, &mut out).await.expect("it succeeds");
    let shown = String::from_utf8(out).expect("text");
    for said in [
        "TH-1 (order version 1): completed\n",
        "\n\n    TH-1>delivery (deliver version 1): completed\n    started ",
        "\n    it is a step of TH-1\n",
        "\n\n        TH-1>delivery>packing (pack version 1): completed\n        started ",
        "\n        print-label ",
    ] {
        assert!(shown.contains(said), "no {said:?} in\n{shown}");
    }
    assert!(shown.starts_with("TH-1 ") && !shown.contains(" \n"), "{shown}");
}
