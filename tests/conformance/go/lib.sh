# What `run` and `crash` share: building the suites' test binaries and running one test of them. Sourced.

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
KAFKA=${KAFKA:-127.0.0.1:9092} SASL=${SASL:-127.0.0.1:9093}
bin=${XDG_CACHE_HOME:-$HOME/.cache}/strandline/conformance/go
all_suites=(kgo kafka-go watermill)

die() { echo "$(basename "$0"): $*" >&2; exit 2; }

package_of() { # SUITE ID: the import path whose test binary holds the id
  case $1 in
    kgo) echo github.com/twmb/franz-go/pkg/kgo ;;
    kafka-go) [[ $2 == Test* ]] && echo github.com/segmentio/kafka-go || echo "github.com/segmentio/kafka-go/${2%%/*}" ;;
    watermill) echo github.com/ThreeDotsLabs/watermill-kafka/v3/pkg/kafka ;;
    *) die "no suite $1 (${all_suites[*]})" ;;
  esac
}

prefix_of() { # SUITE ID: what stands before the test's own name in the id ("sasl/"), for packages below the suite's root
  [[ $1 == kafka-go && $2 != Test* ]] && echo "${2%%/*}/"
}

limit_of() { # SUITE TOP: seconds
  case $1:$2 in
    kgo:TestGroupETL | kgo:TestTxnEtl | kgo:TestShareGroupETL) echo "${LIMIT:-300}" ;;
    watermill:TestPublishSubscribe* | watermill:TestNoGroup*) echo "${LIMIT:-300}" ;;
    *) echo "${LIMIT:-90}" ;;
  esac
}

binary_of() { # PACKAGE: the path of its test binary; BINARY.folder holds the folder to run it in
  echo "$bin/${1//\//_}"
}

build() { # SUITE ...: the test binaries; Go's own cache makes the second time quick
  local suite id package
  mkdir -p "$bin"
  for suite in "$@"; do
    for id in Test $([[ $suite != kafka-go ]] || echo compress/ sasl/); do
      package=$(package_of "$suite" "$id")
      (cd "$here" && go test -c -o "$(binary_of "$package")" "$package" &&
        go list -f '{{.Dir}}' "$package" > "$(binary_of "$package").folder") || die "cannot build $package"
    done
  done
}

run_unit() { # SUITE UNIT LOG: prints "STATUS SECONDS ID" of each leaf that ran
  local suite=$1 unit=$2 log=$3 package prefix name pattern binary folder
  package=$(package_of "$suite" "$unit") prefix=$(prefix_of "$suite" "$unit")
  name=${unit#"$prefix"}
  pattern=^$(sed 's/[][().*+?^$|{}\\]/\\&/g; s:/:$/^:g' <<< "$name")\$
  if [[ $name == *'|'* ]]; then pattern="^($name)\$"; fi # whole tests together
  # kgo learns the broker's abilities when a test asks for its admin client. This one does not ask, and alone would skip a part.
  if [[ $suite:$name == kgo:TestGroupSimple ]]; then pattern='^(TestClient_ProduceLargeMessages|TestGroupSimple)$'; fi
  binary=$(binary_of "$package")
  folder=$(< "$binary.folder")
  (
    cd "$folder" || exit
    export KGO_SEEDS=$KAFKA KGO_TEST_RF=1 KGO_TEST_RECORDS=${KGO_TEST_RECORDS:-10000} KGO_LOG_LEVEL=${KGO_LOG_LEVEL:-none}
    export KGO_TEST_SCRAM_SEEDS=$SASL KGO_TEST_SCRAM=adminscram256:admin-secret-256 KGO_TEST_OAUTH_SEEDS=$SASL
    export KAFKA_VERSION=4.4.0 KAFKA_SKIP_NETTEST=1 WATERMILL_TEST_KAFKA_BROKERS=$KAFKA
    exec timeout -k 5 "$(limit_of "$suite" "${name%%/*}")" "$binary" -test.run "$pattern" -test.v=test2json -test.count=1 -test.timeout 0
  ) 2>&1 < /dev/null | awk '!/testConsumer sendErr/ || ++repeats <= 1000' > "$log" # a failed ETL test can repeat one line for minutes
  awk -v prefix="$prefix" -v within="$name" -f "$here/verdicts.awk" "$log"
}

reachable() { (exec 3<> "/dev/tcp/${1%:*}/${1##*:}") 2> /dev/null; }

log_of() { # FOLDER UNIT: a file name without slashes, short enough for any file system
  local name=${2//\//.}
  echo "$1/${name:0:150}.log"
}
