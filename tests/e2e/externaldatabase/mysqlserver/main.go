// Runs go-mysql-server, a simulator of MySQL 8 that keeps everything in memory. Arguments: the
// address, the files of a certificate and its key, and the file with the password of the account
// admin, which has all privileges.
package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"os"

	sqle "github.com/dolthub/go-mysql-server"
	"github.com/dolthub/go-mysql-server/memory"
	"github.com/dolthub/go-mysql-server/server"
	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/mysql_db"
	"github.com/sirupsen/logrus"
)

func main() {
	if err := serve(os.Args[1], os.Args[2], os.Args[3], os.Args[4]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(address, certificate, key, secret string) error {
	logrus.SetLevel(logrus.ErrorLevel)
	pair, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		return err
	}
	password, err := os.ReadFile(secret)
	if err != nil {
		return err
	}
	provider := memory.NewDBProvider()
	engine := sqle.NewDefault(provider)
	if err := administer(engine, provider, string(password)); err != nil {
		return err
	}
	config := server.Config{
		Protocol:  "tcp",
		Address:   address,
		Version:   "8.0.36",
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}},
	}
	started, err := server.NewServer(
		config, engine, sql.NewContext, memory.NewSessionBuilder(provider), nil)
	if err != nil {
		return err
	}
	return started.Start()
}

// administer creates the account admin, by an account without password that it removes.
func administer(engine *sqle.Engine, provider *memory.DbProvider, password string) error {
	accounts := engine.Analyzer.Catalog.MySQLDb
	accounts.SetPersister(&mysql_db.NoopPersister{})
	editor := accounts.Editor()
	accounts.AddSuperUser(editor, "root", "localhost", "")
	editor.Close()
	client := sql.Client{User: "root", Address: "localhost"}
	for _, statement := range []string{
		"CREATE USER admin@'%' IDENTIFIED WITH caching_sha2_password BY '" + password + "'",
		"GRANT ALL PRIVILEGES ON *.* TO admin@'%' WITH GRANT OPTION",
		"SET GLOBAL partial_revokes = ON", // GRANT has no wildcards here
		"DROP USER root@localhost",
	} {
		base := sql.NewBaseSessionWithClientServer("", client, 1)
		session := memory.NewSession(base, provider)
		ctx := sql.NewContext(context.Background(), sql.WithSession(session))
		_, rows, _, err := engine.Query(ctx, statement)
		if err != nil {
			return err
		}
		if _, err := sql.RowIterToRows(ctx, rows); err != nil {
			return err
		}
	}
	return nil
}
