// Command gokubeconfig reports how client-go reads kubeconfigs. It reads frames from stdin, each a
// length of 4 bytes (big-endian) and a kubeconfig, and answers each with such a frame on stdout: a
// JSON object of the values that a client would use, by their keys in a kubeconfig. Its key "other"
// names everything that is not a server, inline CA, token or inline client certificate.
package main

import (
	"bufio"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"io"
	"os"

	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	in, out := bufio.NewReader(os.Stdin), bufio.NewWriter(os.Stdout)
	for {
		var length uint32
		if binary.Read(in, binary.BigEndian, &length) != nil {
			return
		}
		content := make([]byte, length)
		if _, err := io.ReadFull(in, content); err != nil {
			return
		}
		answer, err := json.Marshal(read(content))
		if err != nil {
			panic(err)
		}
		_ = binary.Write(out, binary.BigEndian, uint32(len(answer)))
		_, _ = out.Write(answer)
		if out.Flush() != nil {
			return
		}
	}
}

func read(content []byte) map[string]string {
	config, err := clientcmd.Load(content)
	if err != nil {
		return map[string]string{"error": err.Error()}
	}
	client, err := clientcmd.NewDefaultClientConfig(*config, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return map[string]string{"error": err.Error()}
	}
	found := map[string]string{}
	for key, value := range map[string]string{
		"server":                     client.Host,
		"tls-server-name":            client.ServerName,
		"token":                      client.BearerToken,
		"certificate-authority-data": base64.StdEncoding.EncodeToString(client.CAData),
		"client-certificate-data":    base64.StdEncoding.EncodeToString(client.CertData),
		"client-key-data":            base64.StdEncoding.EncodeToString(client.KeyData),
	} {
		if value != "" {
			found[key] = value
		}
	}
	as := client.Impersonate
	for name, set := range map[string]bool{
		"exec":     client.ExecProvider != nil,
		"provider": client.AuthProvider != nil,
		"files":    client.BearerTokenFile+client.CAFile+client.CertFile+client.KeyFile != "",
		"insecure": client.Insecure,
		"basic":    client.Username+client.Password != "",
		"as":       as.UserName+as.UID != "" || len(as.Groups)+len(as.Extra) > 0,
		"proxy":    client.Proxy != nil,
		"more":     len(config.Clusters)+len(config.AuthInfos)+len(config.Contexts) != 3,
	} {
		if set {
			found["other"] += name + " "
		}
	}
	return found
}
