// What a dashboard of ours may say: Grafana's own types, for the panels that we use.
//
// typecheck.py puts each dashboard beside this file, as a literal of `Checked`.
// Options of panels are open in Grafana's type of a panel, so each type of panel is named here,
// with its options. What may be left out is not checked: Grafana fills it in.

import type { AnnotationQuery, Dashboard, FieldConfig, Panel, RowPanel, VariableModel } from "@grafana/schema";
import type * as BarGauge from "@grafana/schema/dist/esm/raw/composable/bargauge/panelcfg/x/BarGaugePanelCfg_types.gen";
import type * as Heatmap from "@grafana/schema/dist/esm/raw/composable/heatmap/panelcfg/x/HeatmapPanelCfg_types.gen";
import type * as Stat from "@grafana/schema/dist/esm/raw/composable/stat/panelcfg/x/StatPanelCfg_types.gen";
import type * as Table from "@grafana/schema/dist/esm/raw/composable/table/panelcfg/x/TablePanelCfg_types.gen";
import type * as TimeSeries from "@grafana/schema/dist/esm/raw/composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen";

/** As JSON has it: enums are their values, and all may be left out. */
type Json<T> = T extends string
  ? `${T}`
  : T extends number | boolean | null | undefined
    ? T
    : T extends (infer One)[]
      ? Json<One>[]
      : { [Key in keyof T]?: Json<T[Key]> };

type Source = { type: "prometheus"; uid: string };

type Query = {
  refId: string;
  datasource: Source;
  expr: string;
  legendFormat?: string;
  instant?: boolean;
  range?: boolean;
  format?: "time_series" | "table" | "heatmap";
};

type Fields<Custom> = Json<Omit<FieldConfig, "custom">> & { custom?: Json<Custom> };

type Of<Type extends string, Options, Custom = never> = Json<
  Omit<Panel, "type" | "options" | "fieldConfig" | "targets" | "datasource">
> & {
  type: Type;
  title: string;
  datasource: Source;
  targets: Query[];
  options: Json<Options>;
  fieldConfig: {
    defaults: Fields<Custom>;
    overrides: { matcher: { id: string; options?: unknown }; properties: { id: string; value?: unknown }[] }[];
  };
};

type Row = Json<Omit<RowPanel, "type" | "panels">> & { type: "row"; panels?: never[] };

// What the Prometheus data source adds, which Grafana's types leave open.
type Variable = Json<Omit<VariableModel, "query">> & {
  query: string | { query: string; refId: string };
  definition?: string;
};

type Annotation = Json<Omit<AnnotationQuery, "datasource">> & {
  datasource: Source | { type: "grafana"; uid: "-- Grafana --" };
  expr?: string;
  step?: string;
  titleFormat?: string;
  textFormat?: string;
  tagKeys?: string;
};

export type Checked = Json<Omit<Dashboard, "panels" | "templating" | "annotations">> & {
  panels: (
    | Row
    | Of<"stat", Stat.Options>
    | Of<"bargauge", BarGauge.Options>
    | Of<"table", Table.Options, Table.FieldConfig>
    | Of<"heatmap", Heatmap.Options, Heatmap.FieldConfig>
    | Of<"timeseries", TimeSeries.Options, TimeSeries.FieldConfig>
  )[];
  templating: { list: Variable[] };
  annotations: { list: Annotation[] };
};
