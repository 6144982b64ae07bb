{{/* A Deployment of one service. Given: root, component, service, own (its block), settings. */}}
{{- define "reverie.deployment" -}}
{{- $root := .root -}}
{{- $own := .own -}}
{{- $full := include "reverie.fullname" $root -}}
{{- $keys := include "reverie.over" (list $root.Values.secret.keys ($own.secretKeys | default dict)) | fromYaml -}}
{{- $recall := eq .service "recall" -}}
{{- $files := dict "root" $root "component" .component "own" $own "keys" $keys "tls" true "bus" (not $recall) -}}
{{- $addresses := dict "host" "0.0.0.0" (printf "%s_port" .service) $own.port -}}
{{- if $root.Values.tls.enabled -}}
{{- $_ := set $addresses "tls_cert" "/etc/reverie/tls/tls.crt" -}}
{{- $_ := set $addresses "tls_key" "/etc/reverie/tls/tls.key" -}}
{{- with $root.Values.tls.caKey -}}
{{- $_ := set $addresses "ca_file" (printf "/etc/reverie/tls/%s" .) -}}
{{- end -}}
{{- end -}}
{{- range $name, $value := $root.Values.oidc -}}
{{- $_ := set $addresses (printf "oidc_%s" $name) (ternary ($value | toJson) $value (kindIs "map" $value)) -}}
{{- end -}}
{{- if $recall -}}
{{- $_ := set $addresses "grpc_port" $own.grpcPort -}}
{{- /* Behind public names, the gateway answers to these and to those of its Service. */ -}}
{{- $public := list -}}
{{- if $root.Values.ingress.enabled -}}
{{- range $root.Values.ingress.hosts -}}{{- $public = append $public .host -}}{{- end -}}
{{- end -}}
{{- if $root.Values.route.enabled -}}
{{- $public = concat $public $root.Values.route.hostnames $root.Values.route.grpc.hostnames -}}
{{- end -}}
{{- if $public -}}
{{- $service := printf "%s-recall" $full -}}
{{- $inside := printf "%s.%s" $service $root.Release.Namespace -}}
{{- $names := concat $public (list $service $inside (printf "%s.svc" $inside) (printf "%s.svc.cluster.local" $inside)) -}}
{{- $_ := set $addresses "allowed_hosts" (ternary "*" (join "," ($names | uniq)) (contains "*" (join "," $public))) -}}
{{- end -}}
{{- if $root.Values.engine.enabled -}}{{- $_ := set $addresses "engine_enabled" true -}}{{- end -}}
{{- range $other := concat (list "ingest" "dream" "staleness") (ternary (list "engine") list $root.Values.engine.enabled) -}}
{{- $port := (index $root.Values $other).port -}}
{{- $_ := set $addresses (printf "%s_url" $other) (printf "%s://%s-%s:%v" (include "reverie.scheme" $root) $full $other $port) -}}
{{- end -}}
{{- end -}}
{{- $settings := include "reverie.over" (list $addresses $root.Values.limits $root.Values.settings $own.settings (.settings | default dict)) | fromYaml -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ $full }}-{{ .component }}
  labels:
    {{- include "reverie.labels" $root | nindent 4 }}
    app.kubernetes.io/component: {{ .component }}
spec:
  {{- if not (or (dig "autoscaling" "enabled" false $own) (dig "keda" "enabled" false $own)) }}
  replicas: {{ $own.replicas }}
  {{- end }}
  revisionHistoryLimit: 5
  strategy:
    type: RollingUpdate
    rollingUpdate:
      maxUnavailable: 0
      maxSurge: 1
  selector:
    matchLabels:
      {{- include "reverie.selector" $root | nindent 6 }}
      app.kubernetes.io/component: {{ .component }}
  template:
    metadata:
      {{- include "reverie.podMeta" . | nindent 6 }}
    spec:
      {{- $spec := include "reverie.podSpec" $files | fromYaml }}
      {{- toYaml (unset $spec "initContainers") | nindent 6 }}
      terminationGracePeriodSeconds: {{ $own.terminationGracePeriodSeconds | default (add $root.Values.drainSeconds (ceil ($settings.shutdown_timeout | default 6)) 10) }}
      {{- with $root.Values.topologySpread }}
      topologySpreadConstraints:
        {{- range . }}
        - {{ toYaml . | nindent 10 | trim }}
          labelSelector:
            matchLabels:
              {{- include "reverie.selector" $root | nindent 14 }}
              app.kubernetes.io/component: {{ $.component }}
          matchLabelKeys: [pod-template-hash]
        {{- end }}
      {{- end }}
      initContainers:
        {{- with $root.Values.extraInitContainers }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
        - name: await-schema
          {{- include "reverie.container" (dict "root" $root) | nindent 10 }}
          args: [migrate, --check, --wait, {{ $root.Values.migrate.waitSeconds | quote }}]
          env:
            {{- include "reverie.servers" (dict "root" $root "keys" $keys "noBus" true) | trim | nindent 12 }}
            {{- with $root.Values.extraEnv }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
          resources:
            {{- toYaml $root.Values.migrate.resources | nindent 12 }}
      containers:
        - name: {{ .service }}
          {{- include "reverie.container" $files | nindent 10 }}
          args: [serve, {{ .service }}]
          env:
            {{- include "reverie.servers" (dict "root" $root "keys" $keys "service" .service "noBus" $recall) | trim | nindent 12 }}
            {{- range $variable, $name := dict "REVERIE_VAULT_KEY" "vaultKey" "REVERIE_LLM_KEY" "llmKey" "REVERIE_EMBEDDING_KEY" "modelKey" "REVERIE_RERANK_KEY" "rerankKey" "REVERIE_ENGINE_MODELS" "engineModels" "REVERIE_ENGINE_MCP_SERVERS" "engineMcpServers" }}
            {{- with index $keys $name }}
            {{- include "reverie.fromSecret" (dict "root" $root "variable" $variable "key" .) | nindent 12 }}
            {{- end }}
            {{- end }}
            {{- if $recall }}
            {{- with index $keys "oidcClientSecret" }}
            {{- include "reverie.fromSecret" (dict "root" $root "variable" "REVERIE_OIDC_CLIENT_SECRET" "key" .) | nindent 12 }}
            {{- end }}
            {{- end }}
            {{- include "reverie.settings" $settings | trim | nindent 12 }}
            {{- with $root.Values.extraEnv }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
          ports:
            - name: http
              containerPort: {{ $own.port }}
            {{- if and $recall (include "reverie.grpc" $root) }}
            - name: grpc
              containerPort: {{ $own.grpcPort }}
            {{- end }}
          startupProbe:
            {{- include "reverie.probe" (dict "root" $root "path" "/ready" "times" $root.Values.probes.startup) | nindent 12 }}
          readinessProbe:
            {{- include "reverie.probe" (dict "root" $root "path" "/ready?own=true" "times" $root.Values.probes.readiness) | nindent 12 }}
          livenessProbe:
            {{- include "reverie.probe" (dict "root" $root "path" "/health" "times" $root.Values.probes.liveness) | nindent 12 }}
          {{- if $root.Values.drainSeconds }}
          lifecycle:
            preStop:
              sleep:
                seconds: {{ $root.Values.drainSeconds }}
          {{- end }}
          resources:
            {{- toYaml $own.resources | nindent 12 }}
        {{- with $root.Values.extraContainers }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
{{- end -}}
