use super::variable::{
    Alias, AliasKind, Check, Empty, Variable, at_least, boolean, int, list, optional, pem, secret,
};

const fn unfiled(mut variable: Variable) -> Variable {
    variable.file = false;
    variable
}

pub(super) const VARIABLES: &[Variable] = &[
    boolean("QUEEN_SYNC_ENABLED", "mesh.enabled", true)
        .doc("The mesh runs when this is true and peers are named; otherwise nothing binds."),
    int("QUEEN_MESH_PORT", "mesh.port", 6633, 1, 65_535)
        .or(&[Alias { name: "QUEEN_UDP_NOTIFY_PORT", kind: AliasKind::Legacy }])
        .doc("TCP port to listen on, and the port of a peer that names none."),
    optional("QUEEN_MESH_BIND_ADDR", "mesh.bind_addr")
        .derived("value of `QUEEN_BIND_ADDR`")
        .checked(Check::Host)
        .empty(Empty::Fatal)
        .like("0.0.0.0")
        .doc("Address of the mesh listener, without a port."),
    optional("QUEEN_MESH_ADVERTISE_HOST", "mesh.advertise_host")
        .derived("host name of the machine")
        .checked(Check::Host)
        .like("queen-1.internal")
        .doc("Host under which peers reach this broker's HTTP port."),
    list("QUEEN_MESH_PEERS", "mesh.peers", &[])
        .or(&[Alias { name: "QUEEN_UDP_PEERS", kind: AliasKind::Legacy }])
        .checked(Check::Peers)
        .like("queen-1:6633,queen-2:6633")
        .doc("Peers as `host[:port]`; an entry that is this broker is skipped."),
    secret("QUEEN_SYNC_SECRET", "mesh.secret")
        .doc("Secret of the handshake, byte for byte the same on all brokers."),
    boolean("QUEEN_MESH_INSECURE", "mesh.insecure", false).doc("True: peers without a secret may boot."),
    at_least("QUEEN_SYNC_HEARTBEAT_MS", "mesh.heartbeat_ms", 1_000, 1).doc("Heartbeat of an outbound link."),
    at_least("QUEEN_SYNC_DEAD_THRESHOLD_MS", "mesh.dead_threshold_ms", 5_000, 1)
        .doc("Silence after which a peer is reported down."),
    at_least("QUEEN_CACHE_REFRESH_INTERVAL_MS", "mesh.reconcile_interval_ms", 60_000, 1)
        .live()
        .doc("Period at which flags are read again and caches dropped; the floor under every lost hint."),
    unfiled(pem("QUEEN_MESH_TLS_CERT", "mesh.tls.cert", "CERTIFICATE"))
        .doc("Certificate for mutual TLS on the mesh port, PEM. All three of these or none."),
    unfiled(pem("QUEEN_MESH_TLS_KEY", "mesh.tls.key", "PRIVATE KEY")).doc("Its private key, PEM."),
    unfiled(pem("QUEEN_MESH_TLS_CA", "mesh.tls.ca", "CERTIFICATE")).doc("Trust anchor of the peers, PEM."),
];
