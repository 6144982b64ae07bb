{{- define "reverie.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "reverie.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains (include "reverie.name" .) .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "reverie.name" .) | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "reverie.selector" -}}
app.kubernetes.io/name: {{ include "reverie.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "reverie.labels" -}}
{{ include "reverie.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: reverie
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "reverie.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "reverie.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "reverie.image" -}}
{{- $name := printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) -}}
{{- if .Values.image.digest -}}
{{- $name = printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- end -}}
{{- include "reverie.fromRegistry" (dict "root" . "image" $name) -}}
{{- end -}}

{{/* An image at image.registry, if one is set. Given: root, image. */}}
{{- define "reverie.fromRegistry" -}}
{{- with .root.Values.image.registry }}{{ trimSuffix "/" . }}/{{ end }}{{ .image -}}
{{- end -}}

{{/* One variable from the Secret. Given: root, variable, key. */}}
{{- define "reverie.fromSecret" -}}
- name: {{ .variable }}
  valueFrom:
    secretKeyRef:
      name: {{ .root.Values.secret.name }}
      key: {{ .key }}
{{- end -}}

{{/* Where the servers are. Given: root, keys, migrate (whether with the rights of the Job), service,
     noBus. Recall reads as who may only read; each service is a user of its own on the bus. */}}
{{- define "reverie.servers" -}}
{{- $root := .root -}}
{{- $full := include "reverie.fullname" $root -}}
{{- if $root.Values.trial.enabled -}}
{{- $words := $root.Values.trial.passwordKeys -}}
{{- if .migrate }}
{{ include "reverie.fromSecret" (dict "root" $root "variable" "POSTGRES_PASSWORD" "key" $words.postgres) }}
- name: REVERIE_DATABASE_MIGRATION_URL
  value: postgresql://postgres:$(POSTGRES_PASSWORD)@{{ $full }}-postgres:5432/reverie
{{- end }}
{{ include "reverie.fromSecret" (dict "root" $root "variable" "SERVICES_PASSWORD" "key" $words.services) }}
- name: REVERIE_DATABASE_URL
  value: postgresql://reverie_service:$(SERVICES_PASSWORD)@{{ $full }}-postgres:5432/reverie
{{- if or .migrate (eq (.service | default "") "recall") }}
{{ include "reverie.fromSecret" (dict "root" $root "variable" "READER_PASSWORD" "key" $words.reader) }}
- name: REVERIE_DATABASE_READONLY_URL
  value: postgresql://reverie_reader:$(READER_PASSWORD)@{{ $full }}-postgres:5432/reverie
{{- end }}
{{- if not .noBus }}
{{ include "reverie.fromSecret" (dict "root" $root "variable" "NATS_PASSWORD" "key" (ternary $words.nats (index $words (printf "nats%s" (title (.service | default "")))) (not .service))) }}
- name: REVERIE_NATS_URL
  value: nats://{{ .service | default "reverie" }}:$(NATS_PASSWORD)@{{ $full }}-nats:4222
{{- end }}
{{- else -}}
{{- if and .migrate .keys.migrateDatabaseUrl }}
{{ include "reverie.fromSecret" (dict "root" $root "variable" "REVERIE_DATABASE_MIGRATION_URL" "key" .keys.migrateDatabaseUrl) }}
{{- end }}
{{ include "reverie.fromSecret" (dict "root" $root "variable" "REVERIE_DATABASE_URL" "key" (required "secret.keys.databaseUrl names the key of the Secret that says where Postgres is" .keys.databaseUrl)) }}
{{- if or .migrate (eq (.service | default "") "recall") }}
{{- with .keys.readerDatabaseUrl }}
{{ include "reverie.fromSecret" (dict "root" $root "variable" "REVERIE_DATABASE_READONLY_URL" "key" .) }}
{{- end }}
{{- end }}
{{- with .keys.databaseReadUrl }}
{{ include "reverie.fromSecret" (dict "root" $root "variable" "REVERIE_DATABASE_REPLICA_URL" "key" .) }}
{{- end }}
{{- if not .noBus }}
{{ include "reverie.fromSecret" (dict "root" $root "variable" "REVERIE_NATS_URL" "key" (required "secret.keys.natsUrl names the key of the Secret that says where NATS is" .keys.natsUrl)) }}
{{- if .keys.natsCreds }}
- name: REVERIE_NATS_CREDS
  value: /etc/reverie/nats/natsCreds
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{/* The variables of pods that migrate, back up and administer. Given: root, keys. */}}
{{- define "reverie.operatorEnv" -}}
{{- include "reverie.servers" (dict "root" .root "keys" .keys "migrate" true) | trim }}
{{- with .keys.apiKey }}
{{ include "reverie.fromSecret" (dict "root" $.root "variable" "REVERIE_API_KEY" "key" .) }}
{{- end }}
{{- include "reverie.settings" .root.Values.settings }}
{{- with .root.Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The volume of the backups, where there is one. */}}
{{- define "reverie.backupVolume" -}}
{{- if .Values.backup.enabled -}}
- name: backups
  persistentVolumeClaim:
    claimName: {{ .Values.backup.volume.existingClaim | default (printf "%s-backups" (include "reverie.fullname" .)) }}
{{- end -}}
{{- end -}}

{{/* The Secret with the certificate of the pods. */}}
{{- define "reverie.tlsSecret" -}}
{{- .Values.tls.secretName | default (printf "%s-tls" (include "reverie.fullname" .)) -}}
{{- end -}}

{{/* http or https. */}}
{{- define "reverie.scheme" -}}
{{- ternary "https" "http" .Values.tls.enabled -}}
{{- end -}}

{{/* Files of Secrets that a pod has. Given: root, keys, tls, bus: whether it has those. */}}
{{- define "reverie.fileVolumes" -}}
{{- if and .tls .root.Values.tls.enabled }}
- name: tls
  secret:
    secretName: {{ include "reverie.tlsSecret" .root }}
    defaultMode: 288
{{- end }}
{{- if and .bus (not .root.Values.trial.enabled) .keys.natsCreds }}
- name: nats
  secret:
    secretName: {{ .root.Values.secret.name }}
    defaultMode: 288
    items:
      - key: {{ .keys.natsCreds }}
        path: natsCreds
{{- end }}
{{- end -}}

{{- define "reverie.fileMounts" -}}
{{- range $one := include "reverie.fileVolumes" . | fromYamlArray }}
- name: {{ $one.name }}
  mountPath: /etc/reverie/{{ $one.name }}
  readOnly: true
{{- end }}
{{- end -}}

{{/* Settings as variables, in the order of their names. Given: a map. */}}
{{- define "reverie.settings" -}}
{{- range $name := keys . | sortAlpha }}
{{- $value := index $ $name }}
- name: REVERIE_{{ upper $name }}
  value: {{ if kindIs "map" $value }}{{ toJson $value | quote }}{{ else if kindIs "float64" $value }}{{ if eq (floor $value) $value }}{{ int64 $value | quote }}{{ else }}{{ $value | quote }}{{ end }}{{ else }}{{ $value | quote }}{{ end }}
{{- end }}
{{- end -}}

{{/* What every pod has of the same. Given: root, component, own (the block of its service). */}}
{{- define "reverie.podMeta" -}}
labels:
  {{- include "reverie.labels" .root | nindent 2 }}
  app.kubernetes.io/component: {{ .component }}
  {{- with include "reverie.over" (list .root.Values.podLabels (.own.podLabels | default dict)) | fromYaml }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with include "reverie.over" (list .root.Values.podAnnotations (.own.podAnnotations | default dict)) | fromYaml }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "reverie.podSpec" -}}
serviceAccountName: {{ include "reverie.serviceAccountName" .root }}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  {{- toYaml .root.Values.podSecurityContext | nindent 2 }}
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with include "reverie.over" (list .root.Values.nodeSelector (.own.nodeSelector | default dict)) | fromYaml }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with concat (.own.tolerations | default list) .root.Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .own.affinity | default .root.Values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.extraInitContainers }}
initContainers:
  {{- toYaml . | nindent 2 }}
{{- end }}
volumes:
  {{- if .backups }}
  {{- with include "reverie.backupVolume" .root }}
  {{- . | nindent 2 }}
  {{- end }}
  {{- end }}
  - name: home
    emptyDir:
      sizeLimit: {{ .root.Values.scratch.sizeLimit }}
  - name: tmp
    emptyDir:
      sizeLimit: {{ .root.Values.scratch.sizeLimit }}
  {{- with include "reverie.fileVolumes" . | trim }}
  {{- . | nindent 2 }}
  {{- end }}
  {{- with .root.Values.extraVolumes }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{/* Given: root, backups (whether their volume belongs to it), and what reverie.fileVolumes takes. */}}
{{- define "reverie.container" -}}
image: {{ include "reverie.image" .root }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
securityContext:
  {{- toYaml .root.Values.securityContext | nindent 2 }}
volumeMounts:
  - name: home
    mountPath: /var/lib/reverie
  - name: tmp
    mountPath: /tmp
  {{- if and .backups .root.Values.backup.enabled }}
  - name: backups
    mountPath: /backups
  {{- end }}
  {{- with include "reverie.fileMounts" . | trim }}
  {{- . | nindent 2 }}
  {{- end }}
  {{- with .root.Values.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with .root.Values.extraEnvFrom }}
envFrom:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "reverie.probe" -}}
httpGet:
  path: {{ .path }}
  port: http
  {{- if .root.Values.tls.enabled }}
  scheme: HTTPS
  {{- end }}
{{ toYaml .times }}
{{- end -}}

{{/* The servers that a NetworkPolicy lets pods reach. Given: to, ports. */}}
{{- define "reverie.egress" -}}
- ports:
    {{- range .ports }}
    - port: {{ . }}
      protocol: TCP
    {{- end }}
  {{- with .to }}
  to:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}

{{/* Maps over one another, the last one winning, also with what is empty. Given: a list of maps. */}}
{{- define "reverie.over" -}}
{{- $all := dict -}}
{{- range $one := . -}}
{{- range $name, $value := $one -}}
{{- $_ := set $all $name $value -}}
{{- end -}}
{{- end -}}
{{- toYaml $all -}}
{{- end -}}

{{/* Whether the gateway answers gRPC: not empty where it does. */}}
{{- define "reverie.grpc" -}}
{{- $settings := include "reverie.over" (list .Values.settings .Values.recall.settings) | fromYaml -}}
{{- if ne (toString $settings.grpc_enabled) "false" -}}yes{{- end -}}
{{- end -}}
