#!/usr/bin/env bash
# Installs a production service from a checkout: files with settings and secrets, a migrated database, a configuration
# for the TLS proxy, a systemd service with a nightly backup. Safe to repeat: existing secrets and added settings are
# kept, and a running service is restarted.
#
#   sudo deploy/production/setup.sh --domain keyway.example.com \
#     --database-url 'postgres://keyway:PASSWORD@db.example.com/keyway' \
#     --mail-url 'smtp://USER:PASSWORD@smtp.example.com:587' \
#     --mail-from 'Example <no-reply@example.com>' --support-email support@example.com
set -euo pipefail
umask 077
root=$(cd "$(dirname "$0")/../.." && pwd)

usage() {
  sed -n '2,10s/^# \{0,1\}//p' "$0"
  cat <<'TEXT'

Options:
  --domain NAME[:PORT]  what the world calls this service; links and tokens begin with https://NAME
  --database-url URL    PostgreSQL. Where it is not on this machine, end it with ?sslmode=verify-full
  --mail-url URL        smtp://…, smtps://…, resend://KEY or postmark://TOKEN
  --mail-from SENDER    'Example <no-reply@example.com>'; the name is the product's
  --support-email ADDR  named in every mail
  --port PORT           where the service listens, on loopback (8080)
  --proxy ADDRESS       where the TLS proxy comes from (127.0.0.1)
  --metrics-port PORT   where Prometheus reads /metrics, on loopback (9464)
  --etc DIR             where settings and secrets are kept (/etc/keyway)
  --state DIR           where the journal and the nightly backups are kept (/var/lib/keyway)
  --no-install          the dependencies are here already
  --no-service          make no user and install no systemd unit
TEXT
}

domain='' database_url='' mail_url='' mail_from='' support_email=''
port=8080 metrics_port=9464 proxy=127.0.0.1 etc=/etc/keyway state=/var/lib/keyway install=yes service=yes
while [ $# -gt 0 ]; do
  case "$1" in
    --domain) domain=$2; shift ;;
    --database-url) database_url=$2; shift ;;
    --mail-url) mail_url=$2; shift ;;
    --mail-from) mail_from=$2; shift ;;
    --support-email) support_email=$2; shift ;;
    --port) port=$2; shift ;;
    --proxy) proxy=$2; shift ;;
    --metrics-port) metrics_port=$2; shift ;;
    --etc) etc=$2; shift ;;
    --state) state=$2; shift ;;
    --no-install) install=no ;;
    --no-service) service=no ;;
    -h | --help) usage; exit 0 ;;
    *) echo "Unknown option $1. See: $0 --help" >&2; exit 64 ;;
  esac
  shift
done
for name in domain database_url mail_url mail_from support_email; do
  [ -n "${!name}" ] || { echo "--${name//_/-} is missing. See: $0 --help" >&2; exit 64; }
done

case "$mail_from$support_email$domain" in *[\'$'\n']*) echo "Values must not contain a quote or a line break." >&2; exit 64 ;; esac

say() { printf '%s\n' "$*"; }

say "1. Dependencies, with the required Node"
if [ "$install" = yes ]; then (umask 022 && cd "$root" && npm ci --omit=dev --no-progress); fi
node=$root/node_modules/node/bin/node
keyway() { "$etc/keyway" "$@"; }

say "2. Settings and secrets in $etc"
mkdir -p "$etc" "$state/journal"
[ -s "$etc/secret" ] || openssl rand -base64 32 >"$etc/secret"
printf '%s\n' "$database_url" >"$etc/database-url"
printf '%s\n' "$mail_url" >"$etc/mail-url"
managed=$(cat <<ENV
KEYWAY_PUBLIC_URL='https://$domain'
KEYWAY_HOST='127.0.0.1'
KEYWAY_PORT='$port'
KEYWAY_TRUSTED_PROXIES='$proxy'
KEYWAY_DATABASE_URL_FILE='$etc/database-url'
KEYWAY_SECRET_FILE='$etc/secret'
KEYWAY_MAIL_URL_FILE='$etc/mail-url'
KEYWAY_MAIL_FROM='$mail_from'
KEYWAY_SUPPORT_EMAIL='$support_email'
KEYWAY_METRICS_PORT='$metrics_port'
KEYWAY_JOURNAL_DIR='$state/journal'
ENV
)
# All other lines of the file were added by hand, and are kept.
added=$(grep -vE "^($(cut -d= -f1 <<<"$managed" | paste -sd'|'))=" "$etc/keyway.env" 2>/dev/null || true)
printf '%s\n' "$managed" ${added:+"$added"} >"$etc/keyway.env"
cat >"$etc/keyway" <<COMMAND
#!/bin/sh
# The keyway command, with the settings of the service.
set -a
. '$etc/keyway.env'
exec '$node' '$root/packages/server/bin/keyway.js' "\$@"
COMMAND
chmod 700 "$etc/keyway"
keyway check-config

say "3. The database"
keyway migrate

say "4. The TLS proxy"
for template in nginx.conf Caddyfile; do
  sed -e "s/@DOMAIN@/${domain%%:*}/g" -e "s/@PORT@/$port/g" "$root/deploy/production/$template" >"$etc/$template"
done
say "   nginx: link $etc/nginx.conf into /etc/nginx/conf.d/, with a certificate for ${domain%%:*}"
say "   Caddy: import $etc/Caddyfile; it fetches the certificate by itself"

say "5. The service"
if [ "$service" = yes ]; then
  id keyway >/dev/null 2>&1 || useradd --system --home-dir /var/lib/keyway --shell /usr/sbin/nologin keyway
  mkdir -p "$state/journal" "$state/backups" && chown -R keyway:keyway "$state"
  chown -R root:keyway "$etc" && chmod 750 "$etc" && chmod 640 "$etc"/* && chmod 750 "$etc/keyway"
  ln -sf "$etc/keyway" /usr/local/bin/keyway
  for unit in keyway.service keyway-backup.service keyway-backup.timer; do
    sed -e "s#@ROOT@#$root#g" -e "s#@ETC@#$etc#g" -e "s#@STATE@#$state#g" "$root/deploy/systemd/$unit" \
      >"/etc/systemd/system/$unit"
    chmod 644 "/etc/systemd/system/$unit"
  done
  systemctl daemon-reload
  systemctl enable keyway keyway-backup.timer
  systemctl restart keyway keyway-backup.timer
  say "   journalctl -u keyway shows its log; the command keyway knows its settings"
  say "   Backups: $state/backups, each night, 14 of them. Copy them and $state/journal to another machine."
else
  say "   Run: $etc/keyway serve"
fi
say "Done. When the proxy is running, check the installation: $etc/keyway doctor"
