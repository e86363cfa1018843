//! The file for Compose: profile `small` is one container with everything, `standard` one for each service and a broker.

use serde_json::{Map, Value, json};
use tg_server::deployed::DEPLOYED;

use crate::pod::{DOOR, GRACE, NAME, REPORT, USER};
use crate::yaml;

const BROKER: &str = "rabbitmq";
/// One that was tried; another minor version is another broker. In full, as podman guesses no registry.
pub const IMAGE: &str = "docker.io/library/rabbitmq:4.0";

/// The file.
pub fn text() -> String {
    let version = env!("CARGO_PKG_VERSION");
    let (mut services, mut volumes) = (Map::new(), Map::new());
    let mut add = |profile: &str, service: &str, door: bool, keeps: bool, models: bool| {
        let mut one = json!({
            "profiles": [profile],
            "image": format!("{NAME}:{version}"),
            "user": format!("{USER}:{USER}"),
            "read_only": true,
            "cap_drop": ["ALL"],
            "security_opt": ["no-new-privileges:true"],
            "tmpfs": ["/tmp"],
            "restart": "unless-stopped",
            "stop_grace_period": format!("{GRACE}s"),
            "environment": environment(profile),
        });
        if profile == "standard" {
            one["command"] = json!(["serve", service]);
            one["secrets"] = json!(["broker"]);
            one["depends_on"] = json!([BROKER]);
        } else {
            one["command"] = json!(["up"]);
        }
        if door {
            one["ports"] = json!([format!("127.0.0.1:{DOOR}:{DOOR}")]);
        }
        if models {
            // Keys of model providers.
            one["env_file"] = json!([{"path": "model.env", "required": false}]);
        }
        match keeps {
            true => {
                let volume = format!("{service}-data");
                one["volumes"] = json!([format!("{volume}:/data")]);
                volumes.insert(volume, json!({}));
            }
            // Podman knows no owner of such a directory.
            false => one["tmpfs"] = json!(["/tmp", "/data:mode=1777"]),
        }
        services.insert(service.to_owned(), one);
    };
    add("small", "up", true, true, true);
    for one in DEPLOYED {
        add(
            "standard",
            one.name,
            one.name == "gateway",
            one.is_single(),
            one.models,
        );
    }
    volumes.insert("rabbitmq-data".to_owned(), json!({}));
    services.insert(BROKER.to_owned(), broker());
    let whole = json!({
        "name": NAME,
        "services": services,
        "volumes": volumes,
        "secrets": {
            // amqp://user:password@rabbitmq:5672/
            "broker": {"file": "./secrets/broker-url"},
            // default_user = … and default_pass = …
            "rabbitmq": {"file": "./secrets/rabbitmq.conf"},
        },
    });
    yaml::file(&[whole])
}

fn environment(profile: &str) -> Value {
    let mut all = json!({
        "THREADGRAPH_AUTH": "iam",
        "THREADGRAPH_DATA_DIR": "/data/threadgraph",
        "THREADGRAPH_DURABILITY": "power",
        "THREADGRAPH_LISTEN": format!("0.0.0.0:{DOOR}"),
        "THREADGRAPH_REPORT__LISTEN": format!("0.0.0.0:{REPORT}"),
    });
    if profile == "standard" {
        all["THREADGRAPH_BUS"] = json!("file:/run/secrets/broker");
    }
    all
}

fn broker() -> Value {
    json!({
        "profiles": ["standard"],
        "image": IMAGE,
        "hostname": BROKER,
        "restart": "unless-stopped",
        "volumes": ["rabbitmq-data:/var/lib/rabbitmq"],
        "secrets": [{"source": "rabbitmq", "target": "/etc/rabbitmq/conf.d/20-user.conf"}],
    })
}
