//! A reader that has seen enough, as in `.. | head -1`.

use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

use clap::Parser as _;
use saga_cli::Admin;
use saga_core::Tenant;

use crate::shop::{Cli, Shop, create_order};

/// Its reader has gone away. It counts how often something is written all the same.
#[derive(Default)]
struct ClosedPipe {
    writes: usize,
}

impl Write for ClosedPipe {
    fn write(&mut self, _text: &[u8]) -> io::Result<usize> {
        self.writes += 1;
        Err(ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_list_ends_with_success_once_its_reader_is_gone() {
    let shop = Shop::with_orders().await;
    for key in ["dear-1", "dear-2"] {
        shop.act(&["skip", key], 0, "goes on").await;
    }
    for number in [1, 2] {
        shop.bury(number.into(), Tenant::default(), "it has no kind").await;
        shop.park(number, Tenant::default(), "the broker refused it").await;
    }
    let admin = Admin::new("shop", shop.clone()).saga(&create_order());
    let lists = [&["list"][..], &["audit"], &["audit", "--json"], &["dead-letters", "list"], &["outbox", "list"]];
    for args in lists {
        let Cli::Admin(command) = Cli::try_parse_from([&["shop"], args].concat()).expect("a command");
        let mut pipe = ClosedPipe::default();
        let code = admin.run(&command, &mut pipe).await.expect("it succeeds");
        assert_eq!((code, pipe.writes), (ExitCode::SUCCESS, 1), "{args:?}");
    }
}
