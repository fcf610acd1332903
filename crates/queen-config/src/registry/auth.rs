use super::variable::{
    Check, Empty, Variable, at_least, boolean, choice, int, list, optional, pem, secret, text,
};

const ALGORITHMS: &[(&str, &[&str])] = &[
    ("HS256", &[]),
    ("HS384", &[]),
    ("HS512", &[]),
    ("RS256", &[]),
    ("RS384", &[]),
    ("RS512", &[]),
    ("EdDSA", &[]),
    ("auto", &[]),
];

pub(super) const VARIABLES: &[Variable] = &[
    boolean("JWT_ENABLED", "auth.enabled", false).doc("Require a token on every route but the public ones."),
    choice("JWT_ALGORITHM", "auth.algorithm", "HS256", ALGORITHMS)
        .doc("Accepted algorithms; `auto` is all, `RS256` all of RS."),
    secret("JWT_SECRET", "auth.secret").doc("Key of the HS algorithms."),
    pem("JWT_PUBLIC_KEY", "auth.public_key", "PUBLIC KEY")
        .doc("Key of the RS and EdDSA algorithms, PEM text."),
    optional("JWT_JWKS_URL", "auth.jwks.url")
        .checked(Check::Url)
        .like("https://id.example.com/jwks.json")
        .doc("Address of a key set; plain http is warned about."),
    at_least("JWT_JWKS_REFRESH_INTERVAL", "auth.jwks.refresh_s", 3_600, 1)
        .doc("Seconds between two reads of it."),
    at_least("JWT_JWKS_TIMEOUT_MS", "auth.jwks.timeout_ms", 5_000, 1).doc("Deadline of such a read."),
    optional("JWT_ISSUER", "auth.issuer")
        .like("https://id.example.com")
        .doc("Required `iss`; unset: not checked."),
    optional("JWT_AUDIENCE", "auth.audience").like("queen").doc("Required `aud`; unset: not checked."),
    int("JWT_CLOCK_SKEW", "auth.clock_skew_s", 30, 0, 3_600).doc("Tolerance of the time claims, seconds."),
    boolean("JWT_REQUIRE_EXP", "auth.require_exp", false).doc("Refuse tokens that never expire."),
    optional("JWT_TENANT_CLAIM", "auth.tenant_claim").like("tenant").doc("Claim that holds the tenant."),
    list("JWT_SKIP_PATHS", "auth.skip_paths", &["/health", "/metrics/prometheus", "/metrics", "/"])
        .empty(Empty::Value)
        .doc("Paths without a token: exact, or a prefix when it ends in `/` and is longer than that."),
    text("JWT_ROLES_CLAIM", "auth.roles.claim", "role").doc("Claim that holds one role."),
    text("JWT_ROLES_ARRAY_CLAIM", "auth.roles.array_claim", "roles")
        .doc("Claim that holds an array of roles."),
    text("JWT_ROLE_ADMIN", "auth.roles.admin", "admin").doc("Name of the role that may do everything."),
    text("JWT_ROLE_READ_WRITE", "auth.roles.read_write", "read-write")
        .doc("Name of the role that reads and writes."),
    text("JWT_ROLE_READ_ONLY", "auth.roles.read_only", "read-only").doc("Name of the role that only reads."),
    text("JWT_ROLE_WRITE_ONLY", "auth.roles.write_only", "write-only")
        .doc("Name of the role that only pushes."),
];
