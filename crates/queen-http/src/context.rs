use std::sync::Arc;

use queen_types::TenantId;

/// Who a request acts for. Without authentication and tenancy it is the default tenant and nobody in particular.
#[derive(Debug, Clone)]
pub(crate) struct RequestContext {
    /// Whose rows the handler sees.
    pub(crate) tenant: TenantId,
    /// The authenticated subject, stored with pushed messages.
    pub(crate) producer: Option<Arc<str>>,
}

impl RequestContext {
    /// The context of an open, single-tenant broker.
    pub(crate) fn open() -> RequestContext {
        RequestContext { tenant: TenantId::DEFAULT, producer: None }
    }
}
