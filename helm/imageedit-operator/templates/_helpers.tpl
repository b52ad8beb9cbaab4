{{- define "imageedit-operator.fullname" -}}
{{- if contains "imageedit-operator" .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-imageedit-operator" (.Release.Name | trunc 33 | trimSuffix "-") -}}
{{- end -}}
{{- end -}}

{{- define "imageedit-operator.selectorLabels" -}}
app.kubernetes.io/name: imageedit-operator
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "imageedit-operator.labels" -}}
{{ include "imageedit-operator.selectorLabels" . }}
app.kubernetes.io/component: operator
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "imageedit-operator.serviceAccountName" -}}
{{- .Values.serviceAccount.name | default (include "imageedit-operator.fullname" .) -}}
{{- end -}}

{{- /* The rights that a watched namespace needs; each verb is used by the operator's code. */ -}}
{{- define "imageedit-operator.namespacedRules" -}}
- apiGroups: [imageedit.dev]
  resources: [imageeditdeployments]
  verbs: [get, list, watch]
- apiGroups: [imageedit.dev]
  resources: [imageeditdeployments/status]
  verbs: [patch]
- apiGroups: [apps]
  resources: [deployments]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [""]
  resources: [pods]
  verbs: [list, watch, patch, delete]
- apiGroups: [""]
  resources: [pods/status]
  verbs: [patch]
- apiGroups: [batch]
  resources: [jobs]
  verbs: [list, create, delete]
- apiGroups: [""]
  resources: [services]
  verbs: [get, list, watch, create, patch]
- apiGroups: [resource.k8s.io]
  resources: [resourceclaimtemplates]
  verbs: [get, list, create, patch]
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [get, list, create, patch, delete]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [list]
{{- end -}}

{{- /* The rights on the Lease; a name cannot bind `create`. */ -}}
{{- define "imageedit-operator.leaseRules" -}}
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [create]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [{{ include "imageedit-operator.fullname" . }}]
  verbs: [get, patch]
{{- end -}}

{{- /* The rights of people who use the plugin, where their resources are; each verb is used by its code. */ -}}
{{- define "imageedit-operator.pluginRules" -}}
- apiGroups: [imageedit.dev]
  resources: [imageeditdeployments]
  verbs: [get, list, create, patch]
- apiGroups: [apps]
  resources: [deployments]
  verbs: [get, list]
- apiGroups: [""]
  resources: [pods]
  verbs: [list]
- apiGroups: [""]
  resources: [pods/proxy]
  verbs: [get]
- apiGroups: [""]
  resources: [services]
  verbs: [get]
- apiGroups: [""]
  resources: [services/proxy]
  verbs: [create]
- apiGroups: [batch]
  resources: [jobs]
  verbs: [list]
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [get, list]
- apiGroups: [""]
  resources: [persistentvolumeclaims]
  verbs: [get]
- apiGroups: [resource.k8s.io]
  resources: [resourceclaimtemplates]
  verbs: [get]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [list]
{{- end -}}

{{- /* The same for counting free cards, in the whole cluster. */ -}}
{{- define "imageedit-operator.pluginCardRules" -}}
- apiGroups: [""]
  resources: [nodes]
  verbs: [list]
- apiGroups: [""]
  resources: [pods]
  verbs: [list]
{{- end -}}

{{- /* The same for sick cards, in kube-system. */ -}}
{{- define "imageedit-operator.pluginHealthRules" -}}
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get]
{{- end -}}
