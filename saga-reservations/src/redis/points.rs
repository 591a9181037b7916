//! Where a test may step in.

use std::sync::Arc;

use saga_core::env::BoxFuture;

/// A point in the work of an operation, at which a test may step in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(not(feature = "test-clock"), expect(unreachable_pub, reason = "only tests step in"))]
pub enum Point {
    /// Redis has the hold. If SQL may have the key, it was not asked yet.
    Held,
    /// Redis knows that a key is to be released, and SQL does not yet.
    Barring,
    /// Some keys were read from SQL, and Redis does not know them yet.
    KeysRead,
    /// Redis has marked the hold, and SQL has no confirmation yet.
    Marked,
    /// SQL has the confirmation, and Redis does not know it yet.
    Committed,
    /// SQL was read, and Redis does not know yet what it has.
    Read,
    /// Redis has the lower capacity, and SQL does not yet.
    Lowered,
}

/// What a test does at the points; nothing outside of tests.
#[derive(Clone, Default)]
pub(super) struct Points {
    reach: Option<Arc<dyn Fn(Point) -> BoxFuture<'static, ()> + Send + Sync>>,
}

impl Points {
    #[cfg(feature = "test-clock")]
    pub(super) fn new(reach: impl Fn(Point) -> BoxFuture<'static, ()> + Send + Sync + 'static) -> Self {
        Self { reach: Some(Arc::new(reach)) }
    }

    pub(super) async fn reach(&self, point: Point) {
        if let Some(reach) = &self.reach {
            reach(point).await;
        }
    }
}
